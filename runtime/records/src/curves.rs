//! Learning curves as an SVG picture: the loss above, what was validated below.
//!
//! Must not know the other destinations.
//!
//! ```text
//! curves.svg   loss over steps 1..690 (logarithmic), accuracy at 30 steps
//! ```

use crate::RecordError;
use crate::record::Record;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The picture in pixels.
const WIDTH: u32 = 900;
const PANEL: u32 = 320;
/// A curve of more points is thinned to the least and the greatest of each part, so that peaks stay.
const PARTS: usize = 600;
/// A loss that falls by more than this is drawn on a logarithmic scale.
const WIDE: f64 = 20.0;
/// Colours that people who do not see all colours can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

type Points = Vec<(f64, f64)>;

/// The curves of a run.
#[derive(Debug)]
pub(crate) struct Curves {
    path: PathBuf,
    loss: Points,
    validation: Vec<(String, Points)>,
}

impl Curves {
    /// Looks whether the picture can be written.
    pub fn new(path: &Path) -> Result<Curves, RecordError> {
        let unwritable = |error| RecordError::new(path, "cannot be written", &error);
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(unwritable)?;
        Ok(Curves {
            path: path.to_owned(),
            loss: vec![],
            validation: vec![],
        })
    }

    /// Takes the points of a record; what is not finite has no place.
    pub fn add(&mut self, record: &Record) {
        let step = record.step as f64;
        if let Some(loss) = record.loss.filter(|loss| loss.is_finite()) {
            self.loss.push((step, loss));
        }
        for (name, value) in record
            .validation
            .iter()
            .filter(|(_, value)| value.is_finite())
        {
            match self.validation.iter_mut().find(|(known, _)| known == name) {
                Some((_, points)) => points.push((step, *value)),
                None => self.validation.push((name.clone(), vec![(step, *value)])),
            }
        }
    }

    /// Writes the picture.
    pub fn draw(&self) -> Result<(), RecordError> {
        let text = self.picture().map_err(|why| RecordError {
            file: self.path.display().to_string(),
            message: format!("cannot be drawn: {why}"),
            full: false,
        })?;
        std::fs::write(&self.path, text)
            .map_err(|error: io::Error| RecordError::new(&self.path, "cannot be written", &error))
    }

    /// The picture's text.
    pub fn picture(&self) -> Result<String, String> {
        let mut text = String::new();
        {
            let panels = 1 + u32::from(!self.validation.is_empty());
            let area =
                SVGBackend::with_string(&mut text, (WIDTH, PANEL * panels)).into_drawing_area();
            area.fill(&WHITE).map_err(|error| error.to_string())?;
            let parts = area.split_evenly((panels as usize, 1));
            panel(
                &parts[0],
                "loss of the batch",
                &[("loss", thinned(&self.loss))],
                true,
            )?;
            if let Some(below) = parts.get(1) {
                let curves: Vec<_> = self
                    .validation
                    .iter()
                    .map(|(name, points)| (name.as_str(), thinned(points)))
                    .collect();
                panel(below, "validation", &curves, false)?;
            }
            area.present().map_err(|error| error.to_string())?;
        }
        Ok(text)
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A panel with its curves over the steps.
fn panel(area: &Area, title: &str, curves: &[(&str, Points)], falling: bool) -> Result<(), String> {
    let (steps, values) = (span(curves, |p| p.0), span(curves, |p| p.1));
    let logarithmic = falling && values.start > 0.0 && values.end / values.start > WIDE;
    if logarithmic {
        let margin = (values.end / values.start).powf(0.05);
        let values = (values.start / margin..values.end * margin).log_scale();
        axes(area, title, curves, steps, values)
    } else {
        let margin = match values.end - values.start {
            0.0 => 0.05 * values.end.abs().max(1.0),
            height => 0.05 * height,
        };
        axes(
            area,
            title,
            curves,
            steps,
            values.start - margin..values.end + margin,
        )
    }
}

fn axes<V>(
    area: &Area,
    title: &str,
    curves: &[(&str, Points)],
    steps: Range<f64>,
    values: V,
) -> Result<(), String>
where
    V: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
    V::CoordDescType: ValueFormatter<f64>,
{
    let failed = |error: DrawingAreaErrorKind<_>| -> String { format!("{error}") };
    let last = if steps.end > steps.start {
        steps.end
    } else {
        steps.start + 1.0
    };
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(steps.start..last, values)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc("step")
        .x_label_formatter(&|step| format!("{step:.0}"))
        .draw()
        .map_err(failed)?;
    for (number, (name, points)) in curves.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        chart
            .draw_series(LineSeries::new(
                points.iter().copied(),
                colour.stroke_width(2),
            ))
            .map_err(failed)?
            .label(*name)
            .legend(move |(x, y)| {
                PathElement::new(vec![(x, y), (x + 16, y)], colour.stroke_width(2))
            });
        if let [point] = points.as_slice() {
            // A line of one point would not be seen.
            chart
                .draw_series([Circle::new(*point, 3, colour.filled())])
                .map_err(failed)?;
        }
    }
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()
        .map_err(failed)
}

/// The least and the greatest of a coordinate; 0 to 1 where there are no points.
fn span(curves: &[(&str, Points)], of: fn(&(f64, f64)) -> f64) -> Range<f64> {
    let all = || curves.iter().flat_map(|(_, points)| points.iter().map(of));
    let (least, greatest) = (all().reduce(f64::min), all().reduce(f64::max));
    least.unwrap_or(0.0)..greatest.unwrap_or(1.0)
}

/// The curve, of many points the least and the greatest of each part, in their order.
fn thinned(points: &Points) -> Points {
    if points.len() <= 2 * PARTS {
        return points.clone();
    }
    let mut kept = vec![];
    for part in points.chunks(points.len().div_ceil(PARTS)) {
        let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (least, greatest) = (part.iter().min_by(by), part.iter().max_by(by));
        let mut two: Points = least.into_iter().chain(greatest).copied().collect();
        two.sort_by(|a, b| a.0.total_cmp(&b.0));
        two.dedup();
        kept.extend(two);
    }
    kept
}
