//! temp
/// temp
pub fn html(_: &linerate_model::Record) -> String {
    String::new()
}
