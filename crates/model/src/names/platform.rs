//! Which classes come with Android and its languages, by their packages.

/// Packages of the platform, of AndroidX, and of Java's and Kotlin's own libraries. Below `org.`
/// are apps as well as a few libraries that come with Android.
const PACKAGES: [&str; 17] = [
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
    "org.apache.http.",
    "org.ccil.",
    "org.json.",
    "org.w3c.",
    "org.xml.",
    "org.xmlpull.",
    "sun.",
];

/// Whether a class, or a method by its full name, comes with the platform or its languages.
pub fn is_platform(name: &str) -> bool {
    PACKAGES.iter().any(|package| name.starts_with(package))
}
