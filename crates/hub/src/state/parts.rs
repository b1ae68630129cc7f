//! The parts of the hub, as its state sees them.

use ringer_ipc::ApiError;
use ringer_ipc::part::{Part, PartEvent};
use serde_json::Value;

/// The parts of the hub.
pub(super) struct Parts(Vec<Box<dyn Part>>);

impl Parts {
    pub(super) fn new(parts: Vec<Box<dyn Part>>) -> Self {
        Self(parts)
    }

    /// Passes an event to all parts.
    pub(super) fn tell(&mut self, event: PartEvent<'_>) {
        self.0.iter_mut().for_each(|part| part.on_event(&event));
    }

    /// Returns true if a part needs the hub to keep running.
    pub(super) fn need_hub(&self) -> bool {
        self.0.iter().any(|part| part.needs_hub())
    }

    /// The methods of all parts.
    pub(super) fn methods(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().flat_map(|part| part.methods()).copied()
    }

    /// Lets a part answer a request. Returns `None` if no part has the method.
    pub(super) fn call(&mut self, method: &str, params: &Value) -> Option<Result<Value, ApiError>> {
        let part = self.0.iter_mut().find(|part| part.methods().contains(&method))?;
        Some(part.call(method, params))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use ringer_core::message::SurfaceId;
    use serde_json::json;

    use super::*;

    /// Records the surfaces that it hears of, and returns their number.
    #[derive(Default)]
    struct Recorder(Arc<Mutex<Vec<SurfaceId>>>);

    impl Part for Recorder {
        fn on_event(&mut self, event: &PartEvent<'_>) {
            if let PartEvent::SurfaceActive(surface) = event {
                self.0.lock().unwrap().push((*surface).clone());
            }
        }

        fn needs_hub(&self) -> bool {
            !self.0.lock().unwrap().is_empty()
        }

        fn methods(&self) -> &'static [&'static str] {
            &["recorder.count"]
        }

        fn call(&mut self, _: &str, _: &Value) -> Result<Value, ApiError> {
            Ok(json!(self.0.lock().unwrap().len()))
        }
    }

    /// A part that does nothing.
    struct Idle;

    impl Part for Idle {}

    #[test]
    fn all_parts_hear_an_event_and_one_answers_a_request() {
        let recorder = Recorder::default();
        let active = Arc::clone(&recorder.0);
        let mut parts = Parts::new(vec![Box::new(Idle), Box::new(recorder)]);
        assert!(!parts.need_hub());
        let surface = SurfaceId::new("a");
        parts.tell(PartEvent::SurfaceActive(&surface));
        parts.tell(PartEvent::AgentsChanged);
        assert_eq!(*active.lock().unwrap(), [surface]);
        assert!(parts.need_hub());
        assert_eq!(parts.methods().collect::<Vec<_>>(), ["recorder.count"]);
        assert_eq!(parts.call("recorder.count", &Value::Null), Some(Ok(json!(1))));
        assert_eq!(parts.call("recorder.stop", &Value::Null), None);
    }
}
