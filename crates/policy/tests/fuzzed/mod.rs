//! The properties of any policy spec. Checked on the corpus by `cargo test`, and by the fuzz
//! target, which includes this file.

use headway_policy::Shape;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::Spec;

/// A text is a spec that reads back as written and names a system that can be built, or an
/// error that says something; whatever the numbers in it.
pub(crate) fn policy_spec(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match text.parse::<Spec>() {
        Ok(spec) => {
            let written = spec.to_string();
            assert_eq!(written.parse::<Spec>().as_ref(), Ok(&spec), "{written}");
            builds(spec);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn builds(spec: Spec) {
    let shape = Shape::new(4).class(500, 0.995).class(500_000, 0.005);
    let checked = ServerSpec::parse(spec).and_then(|spec| spec.check(&shape));
    if let Err(error) = checked {
        assert!(!error.to_string().is_empty());
    }
}
