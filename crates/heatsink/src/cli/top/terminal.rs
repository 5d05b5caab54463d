//! The terminal of `top`: taken at the beginning, given back whatever the end is.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use heatsink_env::Env;
use ratatui::crossterm::event::{self, KeyEventKind};

use super::app::App;
use super::draw::draw;
use super::event::Event;
use crate::exit::{Exit, in_words};

/// The longest time until an answer is on the screen. Keys are taken at once.
const LOOK: Duration = Duration::from_millis(100);

/// Gives the terminal back when it is dropped. A panic gives it back before its message, by
/// ratatui's own hook.
struct Taken;

impl Drop for Taken {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows it until it is left, or the process is told to stop.
///
/// # Errors
/// Exit 69 for a terminal that cannot be used, or is gone.
pub fn show(app: &mut App, events: &Receiver<Event>, env: &dyn Env) -> Result<(), Exit> {
    let gone = |error: std::io::Error| {
        Exit::unavailable(format!("the terminal cannot be used: {}", in_words(&error)))
    };
    let _taken = Taken;
    let mut terminal = ratatui::try_init().map_err(gone)?;
    while !app.is_done {
        app.tick(env.now());
        terminal.draw(|frame| draw(app, frame)).map_err(gone)?;
        let mut patience = LOOK;
        while event::poll(patience).map_err(gone)? {
            patience = Duration::ZERO;
            match event::read().map_err(gone)? {
                event::Event::Key(key) if key.kind != KeyEventKind::Release => app.press(key),
                // Another size is taken up by the next drawing.
                _ => {}
            }
        }
        loop {
            match events.try_recv() {
                Ok(Event::Told(told)) => {
                    app.tick(env.now());
                    app.tell(told);
                }
                Ok(Event::Stop) => app.is_done = true,
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    return Err(Exit::software("nobody asks the server any more"));
                }
            }
        }
    }
    Ok(())
}
