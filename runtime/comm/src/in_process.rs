//! Sites as threads of one process: buffers are handed over by reference count, never copied.
//!
//! Every site has one inbox for messages of all sites, so that a failure anywhere wakes whoever waits for
//! anyone. Must not know who runs the threads.
//!
//! ```text
//! in_process(2) -> [site 0 of 2, site 1 of 2]
//! ```

use crate::{CommError, Communicator, Ticket, check_types, stall};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use ein_device::{Buffer, BufferType};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The ends of `sites` sites, in order; each goes to the thread that is that site. Dropping one while the
/// others still wait for it makes their calls fail.
pub fn in_process(sites: u32) -> Vec<InProcess> {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..sites).map(|_| unbounded()).unzip();
    let said: Arc<Mutex<String>> = Arc::default();
    inboxes
        .into_iter()
        .enumerate()
        .map(|(site, inbox)| InProcess {
            site: site as u32,
            senders: senders.clone(),
            state: Mutex::new(State {
                inbox,
                waiting: (0..sites).map(|_| VecDeque::new()).collect(),
                gone: vec![false; sites as usize],
                calls: 0,
                open: BTreeMap::new(),
                failure: None,
                doing: String::new(),
                patience: None,
                said: Arc::clone(&said),
            }),
        })
        .collect()
}

/// One site's end.
pub struct InProcess {
    site: u32,
    senders: Vec<Sender<Sent>>,
    state: Mutex<State>,
}

/// The sender, the number of its call, and what it says.
type Sent = (u32, u64, Message);

enum Message {
    /// Buffers of `exchange` and `share`.
    Parcel(Vec<Buffer>),
    /// What `agree` passes round; `barrier` is an agreement about nothing.
    Text(Option<String>),
    /// The sender has failed; nothing follows.
    Failed(String),
    /// The sender's end is dropped; nothing follows.
    Gone,
}

/// The own parcel, and what comes from each site.
type Open = (Vec<Buffer>, Vec<Vec<BufferType>>);

struct State {
    inbox: Receiver<Sent>,
    /// Messages that came before they were asked for, by sender, each with the number of the call that it belongs to.
    waiting: Vec<VecDeque<(u64, Message)>>,
    gone: Vec<bool>,
    /// Calls so far in which all sites talk; the same number at all sites that are at the same call.
    calls: u64,
    /// What was begun and not ended.
    open: BTreeMap<Ticket, Open>,
    failure: Option<CommError>,
    /// What messages are waited for now, and for how long without a word.
    doing: String,
    patience: Option<Duration>,
    /// What some site has said of a long wait.
    said: Arc<Mutex<String>>,
}

impl State {
    /// The number of the call that begins.
    fn call(&mut self) -> u64 {
        self.calls += 1;
        self.calls
    }

    /// The message of one site that belongs to a call. Fails as soon as any site is known to have failed.
    fn next(&mut self, me: u32, from: u32, call: u64) -> Result<Message, CommError> {
        let mut patience = self
            .patience
            .map(|patience| (Instant::now() + patience, patience));
        loop {
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            let waiting = &mut self.waiting[from as usize];
            let found = waiting.iter().position(|(number, _)| *number == call);
            if let Some((_, message)) = found.and_then(|at| waiting.remove(at)) {
                return Ok(message);
            }
            // A site's messages come in the order of its calls.
            if waiting.iter().any(|(number, _)| *number > call) {
                return Err(CommError::of(from, "is at another step of the plan"));
            }
            if self.gone[from as usize] {
                return Err(CommError::of(from, "ended before the run was over"));
            }
            let received = match patience {
                None => self
                    .inbox
                    .recv()
                    .map_err(|_| RecvTimeoutError::Disconnected),
                Some((until, _)) => self.inbox.recv_deadline(until),
            };
            match received {
                Ok((site, _, Message::Failed(text))) => {
                    self.failure = Some(CommError::of(site, text));
                }
                Ok((site, _, Message::Gone)) => self.gone[site as usize] = true,
                Ok((site, number, message)) => {
                    self.waiting[site as usize].push_back((number, message));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some((_, waited)) = patience.take() {
                        self.tell(me, (from, call), waited);
                    }
                }
                // Every end holds a sender to every inbox, this one's own included.
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(CommError::of(from, "cannot be reached"));
                }
            }
        }
    }

    /// Says for whom this site waits, unless another one has said it. Messages are taken by site, from 0 on.
    fn tell(&self, me: u32, (from, call): (u32, u64), waited: Duration) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if *said == self.doing {
            return;
        }
        said.clone_from(&self.doing);
        let others = (from..).zip(&self.waiting[from as usize..]);
        let missing = others.filter(|(site, messages)| {
            *site != me && messages.iter().all(|(number, _)| *number != call)
        });
        let missing: Vec<u32> = missing.map(|(site, _)| site).collect();
        eprintln!("{}", stall::told(me, &self.doing, waited, &missing));
    }

    fn parcel(
        &mut self,
        me: u32,
        (from, call): (u32, u64),
        kinds: &[BufferType],
    ) -> Result<Vec<Buffer>, CommError> {
        match self.next(me, from, call)? {
            Message::Parcel(arrays) => {
                check_types(from, &arrays, kinds)?;
                Ok(arrays)
            }
            _ => Err(CommError::of(from, "is at another step of the plan")),
        }
    }
}

impl InProcess {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held ends this site's run; its end only has to be dropped then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, to: usize, call: u64, message: Message) {
        // A receiver that is gone has said so, or will be noticed when something is expected from it.
        let _ = self.senders[to].send((self.site, call, message));
    }

    fn send_others(&self, call: u64, message: impl Fn() -> Message) {
        for to in 0..self.senders.len() {
            if to != self.site as usize {
                self.send(to, call, message());
            }
        }
    }

    /// Each site's parcel of a call; the own one is `own`.
    fn receive(
        &self,
        call: u64,
        own: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        check_types(self.site, &own, &incoming[self.site as usize])?;
        let mut own = Some(own);
        let mut state = self.state();
        (0..self.sites())
            .zip(incoming)
            .map(|(from, kinds)| match own.take_if(|_| from == self.site) {
                Some(own) => Ok(own),
                None => state.parcel(self.site, (from, call), kinds),
            })
            .collect()
    }
}

impl Communicator for InProcess {
    fn site(&self) -> u32 {
        self.site
    }

    fn sites(&self) -> u32 {
        self.senders.len() as u32
    }

    fn is_one_process(&self) -> bool {
        true
    }

    fn begin(
        &self,
        outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError> {
        let call = self.state().call();
        let mut own = vec![];
        for (to, parcel) in outgoing.into_iter().enumerate() {
            if to == self.site as usize {
                own = parcel;
            } else {
                self.send(to, call, Message::Parcel(parcel));
            }
        }
        let ticket = Ticket(call);
        self.state().open.insert(ticket, (own, incoming.to_vec()));
        Ok(ticket)
    }

    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Buffer>>, CommError> {
        let open = self.state().open.remove(&ticket);
        let (own, incoming) =
            open.ok_or_else(|| CommError::of(self.site, "ends what it has not begun"))?;
        self.receive(ticket.0, own, &incoming)
    }

    fn share(
        &self,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        let call = self.state().call();
        self.send_others(call, || Message::Parcel(mine.clone()));
        self.receive(call, mine, incoming)
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.agree(None).map(|_| ())
    }

    fn agree(&self, mine: Option<String>) -> Result<Option<(u32, String)>, CommError> {
        let mut state = self.state();
        let call = state.call();
        self.send_others(call, || Message::Text(mine.clone()));
        let mut lowest = None;
        for from in 0..self.sites() {
            let text = if from == self.site {
                mine.clone()
            } else {
                match state.next(self.site, from, call)? {
                    Message::Text(text) => text,
                    _ => return Err(CommError::of(from, "is at another step of the plan")),
                }
            };
            if lowest.is_none() {
                lowest = text.map(|text| (from, text));
            }
        }
        Ok(lowest)
    }

    fn doing(&self, what: String, patience: Option<Duration>) {
        let mut state = self.state();
        (state.doing, state.patience) = (what, patience);
    }

    fn abort(&self, message: &str) {
        self.state().failure = Some(CommError::of(self.site, message));
        self.send_others(0, || Message::Failed(message.to_owned()));
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.send_others(0, || Message::Failed("panicked".to_owned()));
        } else {
            self.send_others(0, || Message::Gone);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ein_array::{Array, Data};

    fn array(values: &[i64]) -> Buffer {
        Array::new(vec![values.len()], Data::I64(values.to_vec()))
            .unwrap()
            .into()
    }

    fn kind(n: usize) -> BufferType {
        BufferType::dense(ein_plan::DType::I64, vec![n])
    }

    /// Runs one closure a site, each on its own thread; a panic gives `None`.
    fn on_sites<T: Send>(sites: u32, body: impl Fn(InProcess) -> T + Sync) -> Vec<Option<T>> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = in_process(sites)
                .into_iter()
                .map(|end| scope.spawn(|| body(end)))
                .collect();
            threads.into_iter().map(|t| t.join().ok()).collect()
        })
    }

    #[test]
    fn a_long_wait_is_told_once_and_then_goes_on() {
        let said = on_sites(3, |end| {
            let kinds = vec![vec![kind(1)]; 3];
            let mut said = vec![];
            for round in 0..3 {
                end.doing(
                    format!("step {round}, `x`"),
                    Some(Duration::from_millis(40)),
                );
                if round == 1 && end.site() == 2 {
                    std::thread::sleep(Duration::from_millis(400));
                }
                let got = end.share(vec![array(&[round])], &kinds).unwrap();
                assert_eq!(got[2][0].to_host().data(), &Data::I64(vec![round]));
                said.push(end.state().said.lock().unwrap().clone());
            }
            said
        });
        // Whether a wait of the other rounds was long as well is the machine's affair.
        assert!(
            said.iter()
                .flatten()
                .any(|said| said.contains(&"step 1, `x`".to_owned())),
            "{said:?}"
        );
    }

    #[test]
    fn arrays_are_handed_over_not_copied() {
        let results = on_sites(3, |end| {
            let me = i64::from(end.site());
            let outgoing: Vec<_> = (0..3).map(|to| vec![array(&[me, to])]).collect();
            let addresses: Vec<_> = outgoing.iter().map(|p| p[0].identity()).collect();
            let got = end.exchange(outgoing, &vec![vec![kind(2)]; 3]).unwrap();
            for (from, parcel) in got.iter().enumerate() {
                assert_eq!(parcel[0], array(&[from as i64, me]));
            }
            let got_addresses: Vec<_> = got.iter().map(|p| p[0].identity()).collect();
            (addresses, got_addresses, got)
        });
        let results: Vec<_> = results.into_iter().flatten().collect();
        assert_eq!(results.len(), 3);
        for (to, (_, got, _)) in results.iter().enumerate() {
            for (from, (sent, _, _)) in results.iter().enumerate() {
                assert_eq!(got[from], sent[to]);
            }
        }
    }

    #[test]
    fn the_lowest_failure_is_agreed_on() {
        let agreed = on_sites(4, |end| {
            let mine = (end.site() % 2 == 1).then(|| format!("bad {}", end.site()));
            end.agree(mine).unwrap()
        });
        assert_eq!(agreed, vec![Some(Some((1, "bad 1".to_owned()))); 4]);
    }

    #[test]
    fn a_site_that_panics_is_named_everywhere() {
        let results = on_sites(4, |end| {
            if end.site() == 2 {
                panic!("on purpose");
            }
            // Site 3 waits for site 0 first, which itself waits for site 2.
            end.barrier()
        });
        for (site, result) in results.into_iter().enumerate() {
            match result {
                None => assert_eq!(site, 2),
                Some(result) => assert_eq!(result, Err(CommError::of(2, "panicked"))),
            }
        }
    }

    #[test]
    fn a_site_that_leaves_is_named() {
        let results = on_sites(2, |end| {
            if end.site() == 1 {
                return Ok(None);
            }
            end.agree(None)
        });
        assert_eq!(
            results[0],
            Some(Err(CommError::of(1, "ended before the run was over")))
        );
    }

    #[test]
    fn a_parcel_that_the_plan_does_not_promise_is_refused() {
        let results = on_sites(2, |end| {
            let mine = vec![array(&vec![0; end.site() as usize + 1])];
            end.share(mine, &[vec![kind(1)], vec![kind(1)]]).map(|_| ())
        });
        let error = CommError::of(1, "sends [i64[2]] where [i64[1]] is expected");
        assert_eq!(results, vec![Some(Err(error.clone())), Some(Err(error))]);
    }
}
