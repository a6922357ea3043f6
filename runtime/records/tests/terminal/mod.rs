//! A terminal in memory: the lines that a person would see.

use indicatif::TermLike;
use std::io;
use std::sync::{Arc, Mutex};

/// Characters of a line; the next one goes to the beginning of the line below.
const WIDTH: usize = 100;

/// The screen of a terminal. Clones show the same screen.
#[derive(Clone, Debug, Default)]
pub struct Terminal(Arc<Mutex<Screen>>);

#[derive(Debug, Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
}

impl Terminal {
    /// Returns what is on the screen, without the blanks at the ends of lines and without empty lines at the end.
    pub fn contents(&self) -> String {
        let screen = self.0.lock().unwrap();
        let lines = screen.lines.iter().map(|line| {
            let text: String = line.iter().collect();
            text.trim_end().to_owned() + "\n"
        });
        lines.collect::<String>().trim_end().to_owned()
    }

    fn change(&self, change: impl FnOnce(&mut Screen)) -> io::Result<()> {
        change(&mut self.0.lock().unwrap());
        Ok(())
    }
}

impl Screen {
    fn write(&mut self, text: &str) {
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                '\r' => self.column = 0,
                // A colour or another attribute: up to a letter.
                '\x1b' => {
                    let _ = characters.find(char::is_ascii_alphabetic);
                }
                character => self.put(character),
            }
        }
    }

    fn put(&mut self, character: char) {
        if self.column == WIDTH {
            (self.row, self.column) = (self.row + 1, 0);
        }
        if self.lines.len() <= self.row {
            self.lines.resize(self.row + 1, vec![]);
        }
        let line = &mut self.lines[self.row];
        if line.len() <= self.column {
            line.resize(self.column + 1, ' ');
        }
        line[self.column] = character;
        self.column += 1;
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        WIDTH as u16
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.change(|screen| screen.row = screen.row.saturating_sub(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.change(|screen| screen.row += n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.change(|screen| screen.column += n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.change(|screen| screen.column = screen.column.saturating_sub(n))
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.change(|screen| {
            screen.write(text);
            screen.write("\n");
        })
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.change(|screen| screen.write(text))
    }

    fn clear_line(&self) -> io::Result<()> {
        self.change(|screen| {
            screen.column = 0;
            let row = screen.row;
            if let Some(line) = screen.lines.get_mut(row) {
                line.clear();
            }
        })
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}
