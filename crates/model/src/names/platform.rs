//! Which classes come with Android and its languages, by their packages.

/// Packages of the platform, of AndroidX, and of Java's and Kotlin's own libraries.
const PACKAGES: [&str; 11] = [
    "android.",
    "androidx.",
    "com.android.",
    "dalvik.",
    "java.",
    "javax.",
    "jdk.",
    "kotlin.",
    "kotlinx.",
    "libcore.",
    "sun.",
];

/// Whether a class, or a method by its full name, comes with the platform or its languages.
pub fn is_platform(name: &str) -> bool {
    PACKAGES.iter().any(|package| name.starts_with(package))
}
