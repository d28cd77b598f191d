//! Texts with placeholders: `{name}` is a variable, `{@path}` a field of a command's output.

/// Replaces the placeholders by what `value` says of their names.
///
/// # Errors
/// In words: a brace without its partner, and what `value` refuses.
pub fn fill(
    template: &str,
    mut value: impl FnMut(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(begin) = rest.find('{') {
        let (before, after) = rest.split_at(begin);
        filled.push_str(before);
        // `{{` is a brace: some words have placeholders of their own.
        if let Some(after) = after.strip_prefix("{{") {
            let end = after.find("}}").ok_or_else(|| unclosed(template))?;
            filled.push('{');
            filled.push_str(&after[..end]);
            filled.push('}');
            rest = &after[end + 2..];
            continue;
        }
        let end = after.find('}').ok_or_else(|| unclosed(template))?;
        filled.push_str(&value(&after[1..end])?);
        rest = &after[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Whether a template can become this text, whatever its placeholders stand for.
pub fn may_be(template: &str, text: &str) -> bool {
    // No text of a file has this letter.
    const ANY: char = '\0';
    let Ok(pattern) = fill(template, |_| Ok(ANY.to_string())) else {
        return false;
    };
    let mut parts: Vec<&str> = pattern.split(ANY).collect();
    let (Some(last), first) = (parts.pop(), parts.first().copied()) else {
        return false;
    };
    let Some(first) = first else {
        return last == text;
    };
    let inside = text
        .strip_prefix(first)
        .and_then(|rest| rest.strip_suffix(last));
    let mut rest = inside;
    for part in &parts[1..] {
        rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
    }
    rest.is_some()
}

fn unclosed(template: &str) -> String {
    format!("`{template}`: a brace is not closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_and_double_braces_are_braces() {
        let value = |name: &str| Ok(name.to_uppercase());
        assert_eq!(fill("a {b}-{c} {{port}}", value).unwrap(), "a B-C {port}");
        assert_eq!(fill("", value).unwrap(), "");
    }

    #[test]
    fn a_template_may_be_what_its_placeholders_allow() {
        for (template, text, may) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("{@engine}", "anything", true),
            ("{a}, {b} paths", "cuckoo, 2 paths", true),
            ("{a}, {b} paths", "cuckoo 2 paths", false),
            ("x{a}x", "x", false),
            ("{{a}}", "{a}", true),
        ] {
            assert_eq!(may_be(template, text), may, "{template} {text}");
        }
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        for text in ["{a", "{{a", "{{a}"] {
            assert!(fill(text, |name| Ok(name.to_owned())).is_err(), "{text}");
        }
    }
}
