//! Draws what `top` knows, on a terminal of any size. All text of others comes here with its unseen
//! characters as escapes (`inert`).
//!
//! Not here: what is known (`app`), the columns of the table (`columns`).

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::app::{App, Mode};
use super::columns;
use crate::cli::hot_keys::{HotKey, Kind, percent, rate, share};
use crate::cli::inert;

/// Lower screens show no details of the selected key.
const DETAILS_FROM: u16 = 18;
/// Lower screens show no reshards and gateways.
const REST_FROM: u16 = 12;
/// Lines of the details.
const DETAILS: u16 = 8;
/// Reshards that are shown; of more the rest is counted.
const RESHARDS: usize = 3;
/// The same of keys that burn and are left alone.
const LEFT_ALONE: usize = 3;

const HELP: &str = "\
up, down     select a key: what it needs is told below the table
s, S         sort by the next column, by the one before (also right and left)
r            reverse the order
/            show only keys and tables that contain a text; Esc shows all again
p            hold the figures as they are
q            leave

±            how wrong the units may be, at most
load         which share the key takes of what its partitions give
             (1,000 write units/s and 3,000 read units/s each)
thrott       which share of its requests was throttled
minute       the load of the last minute: █ is all, ! is refused requests

Any key goes back.";

/// Draws it.
pub fn draw(app: &App, frame: &mut Frame<'_>) {
    let area = frame.area();
    let reshards = app.reshards.as_ref().map(|told| told.under_way()).unwrap_or_default();
    let rest = if area.height < REST_FROM { Vec::new() } else { rest(app, &reshards) };
    let details = if area.height < DETAILS_FROM || app.mode == Mode::Help { 0 } else { DETAILS };
    let heights = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(details),
        Constraint::Length(u16::try_from(rest.len()).unwrap_or(u16::MAX)),
        Constraint::Length(1),
    ];
    let [title, sums, keys, details, others, bottom] = Layout::vertical(heights).areas(area);
    frame.render_widget(title_line(app, title.width), title);
    frame.render_widget(sums_line(app), sums);
    match app.mode {
        Mode::Help => frame.render_widget(Paragraph::new(HELP).wrap(Wrap { trim: false }), keys),
        Mode::Keys | Mode::Filter => {
            let rows = app.rows();
            let at = app.selected_row(&rows);
            draw_keys(app, &rows, at, keys, frame);
            if let Some(key) = rows.get(at).filter(|_| !details.is_empty()) {
                let told = Paragraph::new(told_of(app, key, usize::from(details.width)));
                frame.render_widget(told.wrap(Wrap { trim: false }), details);
            }
        }
    }
    frame.render_widget(Paragraph::new(rest), others);
    frame.render_widget(bottom_line(app), bottom);
}

fn title_line(app: &App, width: u16) -> Line<'static> {
    let age = format!("{:.1} s", app.age().as_secs_f64());
    let (state, style) = match (app.heat(), &app.problem) {
        (None, None) => ("asking".to_owned(), Style::new()),
        (None, Some(_)) => (format!("no answer for {age}"), Style::new().fg(Color::Red).bold()),
        (Some(_), Some(_)) => (format!("no answer, {age} old"), Style::new().fg(Color::Red).bold()),
        (Some(_), None) if app.is_paused => (format!("paused, {age} old"), Style::new().fg(Color::Yellow)),
        (Some(_), None) => (format!("live, {age} old"), Style::new().fg(Color::Green)),
    };
    let room = usize::from(width).saturating_sub(state.len() + 1);
    let name = inert::shortened(&format!("heatsink top  {}", inert::visible(&app.server)), room);
    let gap = room.saturating_sub(Line::raw(name.as_str()).width()) + 1;
    Line::from_iter([name.bold(), " ".repeat(gap).into(), ratatui::text::Span::styled(state, style)])
}

/// The sums of the last second, or why there are none.
fn sums_line(app: &App) -> Line<'static> {
    if let Some(problem) = &app.problem {
        return Line::styled(
            format!("Trying again: {}", inert::visible(problem)),
            Style::new().fg(Color::Red),
        );
    }
    let Some(heat) = app.heat() else { return Line::raw("") };
    let (requests, throttled) = heat.requests();
    let refused = share(throttled, requests);
    let rates = format!(
        "{} write and {} read units/s, {} requests/s, ",
        rate(heat.units(Kind::Write)),
        rate(heat.units(Kind::Read)),
        rate(requests)
    );
    let style = if refused > 0.0 { Style::new().fg(Color::Red).bold() } else { Style::new() };
    let keys = match (app.rows().len(), app.keys().len()) {
        (shown, all) if shown == all => format!("; {all} keys"),
        (shown, all) => format!("; {shown} of {all} keys"),
    };
    let throttled = format!("{} throttled", percent(refused));
    Line::from_iter([rates.into(), ratatui::text::Span::styled(throttled, style), keys.into()])
}

fn draw_keys(app: &App, rows: &[&HotKey], selected: usize, area: Rect, frame: &mut Frame<'_>) {
    let widths = columns::fitting(usize::from(area.width));
    let height = usize::from(area.height).saturating_sub(1);
    // The selected row is always on the screen.
    let first = (selected + 1).saturating_sub(height);
    let mut lines =
        vec![Line::styled(columns::header(app, &widths), Style::new().add_modifier(Modifier::REVERSED))];
    lines.extend(rows.iter().enumerate().skip(first).take(height).map(|(at, key)| {
        let style = match key {
            _ if at == selected && rows.len() > 1 => {
                colour(key).add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
            }
            _ => colour(key),
        };
        Line::styled(columns::row(app, key, &widths), style)
    }));
    if rows.is_empty() {
        lines.push(Line::raw(match (app.heat(), app.keys().is_empty()) {
            (None, _) => "",
            (Some(_), true) => "No key was asked for in the last second.",
            (Some(_), false) => "No key fits the filter.",
        }));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn colour(key: &HotKey) -> Style {
    match key {
        key if key.throttled() > 0.0 => Style::new().fg(Color::Red),
        key if key.is_hot() => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

/// The selected key: as much of its name as fits a line, what was seen of it, what would help.
fn told_of(app: &App, key: &HotKey, width: usize) -> Vec<Line<'static>> {
    let mut of = format!(" · {}s of {}", key.kind(), inert::shortened(&key.place, 30));
    if !key.signs.is_empty() {
        of += &format!("; {}", key.signs);
    }
    let left = width.saturating_sub(console::measure_text_width(&of)).max(width / 3);
    let name = inert::shortened(&key.key, left);
    let mut lines = vec![Line::raw("─".repeat(width)).dim(), Line::from_iter([name.bold(), of.into()])];
    let now = app.heat().map_or(0, |heat| heat.now_ms);
    lines.extend(key.burned.map(|burned| Line::raw(burned.told(now))));
    lines.extend(key.shards_told().map(Line::raw));
    if let Some(advice) = app.heat().and_then(|heat| heat.advice_on(&key.id)) {
        // It comes first: a long sentence may find no room.
        lines.extend(advice.command().map(|command| Line::raw(command.to_owned()).fg(Color::Cyan)));
        lines.push(Line::raw(advice.sentence()));
    }
    lines
}

/// Reshards and gateways.
fn rest(app: &App, reshards: &[String]) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    let refused = |what: &str, problem: &str| Line::raw(format!("{what}: {}", inert::visible(problem))).dim();
    match &app.reshards {
        Err(problem) => lines.push(refused("Reshards", problem)),
        Ok(_) => {
            lines.extend(reshards.iter().take(RESHARDS).map(|line| Line::raw(format!("Reshard: {line}"))))
        }
    }
    if let Some(more @ 1..) = reshards.len().checked_sub(RESHARDS) {
        lines.push(Line::raw(format!("and {more} more reshards")));
    }
    if let Some((heat, automatic)) = app.heat().and_then(|heat| Some((heat, heat.automatic.as_ref()?))) {
        lines.push(Line::raw(format!("Automatic: {}", automatic.state())));
        let left = automatic.left_alone(heat.now_ms);
        lines.extend(left.iter().take(LEFT_ALONE).map(|line| Line::raw(format!("  {line}"))));
        if let Some(more @ 1..) = left.len().checked_sub(LEFT_ALONE) {
            lines.push(Line::raw(format!("  and {more} more that burn and are left alone")));
        }
    }
    match &app.gateways {
        Err(problem) => lines.push(refused("Gateways", problem)),
        Ok(told) => lines.extend(told.line().map(|line| Line::raw(format!("Gateways: {line}")))),
    }
    lines
}

fn bottom_line(app: &App) -> Line<'static> {
    let filter = match app.filter.as_str() {
        "" => String::new(),
        filter => inert::visible(filter),
    };
    match app.mode {
        Mode::Filter => {
            Line::from_iter([format!("/{filter}").bold(), "▏  Enter keeps it, Esc shows all".into()])
        }
        Mode::Keys if !filter.is_empty() => {
            Line::raw(format!("q quit  / filter: {filter} (Esc: all)  s sort  p pause  ? help")).dim()
        }
        Mode::Keys | Mode::Help => {
            Line::raw("q quit  s sort  r reverse  / filter  p pause  ↑↓ select  ? help").dim()
        }
    }
}

#[cfg(test)]
mod picture;
#[cfg(test)]
mod tests;
