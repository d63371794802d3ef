//! Classes of Android and its languages, identified by their packages.

/// Packages of the platform, of AndroidX, and of Java's and Kotlin's own libraries. Below `org.`
/// there are apps and a few libraries of Android.
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

/// Returns whether a class, or a method by its full name, belongs to the platform or its languages.
pub fn is_platform(name: &str) -> bool {
    PACKAGES.iter().any(|package| name.starts_with(package))
}
