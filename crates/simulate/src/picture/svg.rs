//! A minimal SVG writer: text, lines, shapes; see docs/develop/dependencies.md.

use std::fmt::Write;

/// A drawing that grows.
#[derive(Default)]
pub(crate) struct Svg {
    body: String,
}

/// How a text is aligned.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub(crate) fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, fill: &str) {
        self.push(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{fill}\"/>"
        ));
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str) {
        self.push(format_args!(
            "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{stroke}\" fill=\"none\"/>"
        ));
    }

    pub(crate) fn path(&mut self, data: &str, fill: &str) {
        self.push(format_args!("<path d=\"{data}\" fill=\"{fill}\"/>"));
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), size: f64, fill: &str, anchor: Anchor, text: &str) {
        self.words((x, y), size, fill, anchor, "400", text);
    }

    pub(crate) fn bold(&mut self, (x, y): (f64, f64), size: f64, fill: &str, text: &str) {
        self.words((x, y), size, fill, Anchor::Start, "700", text);
    }

    fn words(&mut self, (x, y): (f64, f64), size: f64, fill: &str, anchor: Anchor, weight: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        self.push(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{text}</text>"
        ));
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.body, "{element}");
    }

    /// The whole file, on a white ground.
    pub(crate) fn finish(self, width: f64, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"'DejaVu Sans', Verdana, 'Helvetica Neue', Arial, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// Breaks a text into lines of about `width` pixels at that size.
pub(crate) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            // DejaVu Sans, the widest of the family list, takes 0.56 em for a letter of English
            // text.
            Some(line) if (line.chars().count() + 1 + word.chars().count()) as f64 * size * 0.56 <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
