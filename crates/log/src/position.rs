//! Positions in the log, and which of them are durable.

/// A position that an answer waits for. It stays meaningful after a failed write has taken
/// positions back: the epoch says under which history it was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ticket {
    pub(crate) lsn: u64,
    pub(crate) epoch: u32,
}

impl Ticket {
    /// The position as a number that grows with every commit of the process.
    pub const fn lsn(self) -> u64 {
        self.lsn
    }
}

/// What is known of a ticket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Durable,
    Pending,
    /// Its write failed; what it stood for has been undone.
    Lost,
}

/// Where each epoch after the first began: positions past it were given again.
#[derive(Default, Debug)]
pub(crate) struct Epochs(Vec<u64>);

impl Epochs {
    pub(crate) fn current(&self) -> u32 {
        self.0.len() as u32
    }

    /// Begins a new epoch at `lsn`: what was given past it is lost.
    pub(crate) fn begin(&mut self, lsn: u64) {
        self.0.push(lsn);
    }

    pub(crate) fn fate(&self, ticket: Ticket, durable: u64) -> Fate {
        match self.0.get(ticket.epoch as usize) {
            Some(end) if ticket.lsn > *end => Fate::Lost,
            // An epoch begins only past what is durable, so a ticket before it is durable.
            Some(_) => Fate::Durable,
            None if ticket.lsn <= durable => Fate::Durable,
            None => Fate::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_past_a_failed_write_is_lost_though_its_position_is_used_again() {
        let mut epochs = Epochs::default();
        let (kept, lost) = (Ticket { lsn: 100, epoch: 0 }, Ticket { lsn: 200, epoch: 0 });
        assert_eq!(epochs.fate(lost, 100), Fate::Pending);
        epochs.begin(100);
        let again = Ticket { lsn: 200, epoch: 1 };
        assert_eq!(epochs.fate(kept, 100), Fate::Durable);
        assert_eq!(epochs.fate(lost, 300), Fate::Lost);
        assert_eq!(epochs.fate(again, 150), Fate::Pending);
        assert_eq!(epochs.fate(again, 200), Fate::Durable);
    }
}
