//! Why a run stopped, and how sites tell each other.
//!
//! Must not know how an error is drawn.
//!
//! ```text
//! step 4, tensor out, site 2: position 5 is outside `table`, whose dimension 1 has 5 positions; at n = 4
//! ```

use bytesize::ByteSize;
use ein_comm::CommError;
use ein_data::DataError;
use ein_device::DeviceFault;
use ein_plan::{Origin, Plan, Step};
use std::fmt;

/// What kind of thing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file that is read.
    Data,
    /// A file that is written.
    Output,
    /// The program and its data do not go together: a position outside a tensor, a division by zero.
    Program,
    /// The sites were not started alike: another number of them, another program, other options.
    Setup,
    /// A site died or cannot be reached.
    Lost,
    /// A device stopped, or its memory is full.
    Device,
    /// A mistake in a plan or in the run-time.
    Internal,
}

impl ErrorKind {
    const ALL: [ErrorKind; 7] = [
        ErrorKind::Data,
        ErrorKind::Output,
        ErrorKind::Program,
        ErrorKind::Setup,
        ErrorKind::Lost,
        ErrorKind::Device,
        ErrorKind::Internal,
    ];
}

/// The codes that a run can end with, each with a page.
const CODES: [&str; 25] = [
    "E0701", "E0702", "E0703", "E0704", "E0705", "E0706", "E0707", "E0708", "E0709", "E0710",
    "E0717", "E0720", "E0721", "E0722", "E0723", "E0724", "E0725", "E0726", "E0727", "E0728",
    "E0730", "E0731", "E0735", "E0801", "E0999",
];

/// Why a run stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// The page that explains it, such as `E0720`.
    pub code: &'static str,
    /// What kind of thing went wrong.
    pub kind: ErrorKind,
    /// The step of the plan.
    pub step: Option<usize>,
    /// The tensor that was being computed, read or written.
    pub tensor: Option<String>,
    /// Where the program asks for it.
    pub origin: Option<Origin>,
    /// The site where it happened.
    pub site: Option<u32>,
    /// One sentence in the user's terms.
    pub message: String,
    /// What to do about it, where that is known.
    pub help: Option<String>,
}

impl RunError {
    /// An error of no step yet.
    pub(crate) fn new(code: &'static str, kind: ErrorKind, message: impl Into<String>) -> RunError {
        RunError {
            code,
            kind,
            step: None,
            tensor: None,
            origin: None,
            site: None,
            message: message.into(),
            help: None,
        }
    }

    /// Something cannot be written: `code` is `E0705`, or `E0707` for want of room.
    pub fn output(code: &'static str, message: impl Into<String>) -> RunError {
        RunError::new(code, ErrorKind::Output, message)
    }

    /// The system refused so many bytes of memory.
    pub fn no_memory(bytes: usize) -> RunError {
        let size = ByteSize(bytes as u64).display().si();
        let message = format!("there is not enough memory: the system did not give {size}");
        let help = "say how much a site may hold, `--memory 20GiB`, for a plan that holds less, with `--spill` also on disk; or run on more machines";
        RunError {
            help: Some(help.into()),
            ..RunError::new("E0717", ErrorKind::Program, message)
        }
    }

    /// A device cannot go on.
    pub(crate) fn device(fault: &DeviceFault) -> RunError {
        match fault {
            DeviceFault::NoMemory { bytes, free, all } => {
                let message = format!(
                    "the GPU has not enough memory: {} are asked for, and {} of {} are free",
                    ByteSize(*bytes as u64).display().si(),
                    ByteSize(*free).display().si(),
                    ByteSize(*all).display().si()
                );
                let help = "say how much a site may hold there, `--gpu-memory 20GiB`, for a plan that holds less; run on more GPUs; or leave it to the cores, `--device cpu`";
                RunError {
                    help: Some(help.into()),
                    ..RunError::new("E0717", ErrorKind::Device, message)
                }
            }
            DeviceFault::Stopped(why) => RunError::new(
                "E0735",
                ErrorKind::Device,
                format!("the GPU stopped: {why}"),
            ),
        }
    }

    /// A mistake that is not the user's.
    pub(crate) fn internal(message: impl Into<String>) -> RunError {
        RunError::new("E0999", ErrorKind::Internal, message)
    }

    /// A file that cannot be read or written.
    pub(crate) fn data(kind: ErrorKind, error: DataError) -> RunError {
        RunError {
            help: error.help,
            ..RunError::new(
                error.code,
                kind,
                format!("{}: {}", error.file, error.message),
            )
        }
    }

    /// What happened at a step, with the tensor and place that the plan has for it.
    pub(crate) fn in_step(mut self, plan: &Plan, step: usize) -> RunError {
        if let Some(planned) = plan.steps.get(step) {
            self.step = Some(step);
            // Of an operation by blocks, what the program calls it for.
            let whole = |of: &&Step| {
                of.origin == planned.origin && ein_plan::blocks::read(&of.tensor).is_none()
            };
            let block = ein_plan::blocks::read(&planned.tensor);
            let whole = block.and_then(|_| plan.steps.iter().find(whole));
            self.tensor = Some(whole.unwrap_or(planned).tensor.clone());
            self.origin = Some(planned.origin);
        }
        self
    }

    /// What happened in rounds of loops: their names and numbers, the outermost first.
    pub(crate) fn in_rounds<'a>(
        mut self,
        rounds: impl Iterator<Item = (&'a str, u64)>,
    ) -> RunError {
        let rounds: Vec<String> = rounds
            .map(|(name, round)| format!("{name} = {round}"))
            .collect();
        if !rounds.is_empty() {
            self.message += &format!("; in the round {}", rounds.join(", "));
        }
        self
    }

    /// If a site was lost: in which round, and what is left of the run.
    pub(crate) fn in_round(mut self, round: &str, saved: bool) -> RunError {
        if self.kind == ErrorKind::Lost {
            self.message += &format!("; in {round}");
            if saved {
                self.help =
                    Some("`--resume` goes on behind the round of the last checkpoint".into());
            }
        }
        self
    }

    /// What happened at an output.
    pub(crate) fn in_output(mut self, plan: &Plan, output: usize) -> RunError {
        if let Some(planned) = plan.outputs.get(output) {
            self.tensor = Some(planned.name.clone());
            self.origin = Some(planned.origin);
        }
        self
    }

    /// The site where it happened.
    pub(crate) fn at(mut self, site: u32) -> RunError {
        self.site = Some(site);
        self
    }

    /// The same with what to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> RunError {
        self.help = Some(help.into());
        self
    }

    /// As one text, for [`ein_comm::Communicator::agree`]. Fields are divided by U+001F, which no message has.
    pub(crate) fn encode(&self) -> String {
        let position = |all: &[&str], one: &str| all.iter().position(|c| *c == one);
        let fields = [
            position(&CODES, self.code)
                .unwrap_or(CODES.len() - 1)
                .to_string(),
            (self.kind as usize).to_string(),
            self.step.map_or(String::new(), |s| s.to_string()),
            self.tensor.clone().unwrap_or_default(),
            self.origin.map_or(String::new(), |o| {
                format!("{} {} {} {}", o.file, o.start, o.end, o.line)
            }),
            self.message.clone(),
            self.help.clone().unwrap_or_default(),
        ];
        fields
            .map(|field| field.replace(SEPARATOR, " "))
            .join(&SEPARATOR.to_string())
    }

    /// The error of a site from its text. Text of another form becomes an internal error's message.
    pub(crate) fn decode(site: u32, text: &str) -> RunError {
        let parsed = (|| {
            let fields: Vec<&str> = text.split(SEPARATOR).collect();
            let [code, kind, step, tensor, origin, message, help] = fields.as_slice() else {
                return None;
            };
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let numbers: Vec<u32> = origin
                .split_whitespace()
                .filter_map(|n| n.parse().ok())
                .collect();
            Some(RunError {
                code: CODES.get(code.parse::<usize>().ok()?)?,
                kind: *ErrorKind::ALL.get(kind.parse::<usize>().ok()?)?,
                step: step.parse().ok(),
                tensor: some(tensor),
                origin: match numbers.as_slice() {
                    [file, start, end, line] => Some(Origin {
                        file: *file,
                        start: *start,
                        end: *end,
                        line: *line,
                    }),
                    _ => None,
                },
                site: None,
                message: (*message).to_owned(),
                help: some(help),
            })
        })();
        parsed.unwrap_or_else(|| RunError::internal(text)).at(site)
    }
}

const SEPARATOR: char = '\u{1f}';

impl From<CommError> for RunError {
    fn from(error: CommError) -> RunError {
        RunError {
            site: error.site,
            ..RunError::new("E0730", ErrorKind::Lost, error.to_string())
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for RunError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_survive_the_way_to_another_site() {
        let mut error =
            RunError::new("E0720", ErrorKind::Program, "position 5\nis outside `t`").at(3);
        assert_eq!(RunError::decode(3, &error.encode()), error);
        error.step = Some(4);
        error.tensor = Some("α".into());
        error.origin = Some(Origin {
            file: 1,
            start: 2,
            end: 3,
            line: 4,
        });
        error.help = Some("write less".into());
        assert_eq!(RunError::decode(3, &error.encode()), error);
        assert_eq!(
            RunError::decode(1, "garbage"),
            RunError::internal("garbage").at(1)
        );
    }

    #[test]
    fn every_kind_has_its_number() {
        for (number, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
        }
    }
}
