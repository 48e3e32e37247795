//! The thread that registers applications, and notices their end. None of its calls waits for an application.

use super::access;
use super::connections::{Connected, Connections, ForeignPacket, LISTENER, WAKES, refuse};
use super::device::DaemonDevice;
use super::event::event;
use super::given::{BroughtMemory, Given, Speaker, check_cores, network_of};
use super::inbox::{AdmissionClaim, DaemonOrder, DaemonOutbox};
use super::listener::HostListener;
use super::network::NewNetwork;
use super::programs::ProgramConfinement;
use super::say::say;
use super::settings::{AppRule, DaemonSettings};
use super::state::{self, KnownProgram};
use crate::arbiter::{Newcomer, NewcomerWork};
use crate::memory::SharedLines;
use crate::message::{ClientMessage, DaemonMessage, ProgramRegistration, Registration};
use crate::packet;
use crate::peer::PeerProcess;
use crate::topology::mask;
use headway_machine::{Clock, thread};
use headway_policy::host::{AppKind, AppShape};
use nix::sched::CpuSet;
use nix::sys::epoll::{EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// The timeout for an answer of the pass thread.
const ANSWER: Duration = Duration::from_secs(2);

struct Registered {
    name: String,
    pid: i32,
    end: OwnedFd,
    program: Option<KnownProgram>,
}

/// The state of the thread.
pub(super) struct Registrar {
    listener: HostListener,
    wakes: Arc<EventFd>,
    outbox: DaemonOutbox,
    settings: Arc<RwLock<DaemonSettings>>,
    /// The cores that are dealt out, by the kernel's numbers.
    dealt: Vec<usize>,
    connections: Connections,
    registered: HashMap<u64, Registered>,
    device: Option<DaemonDevice>,
    state: PathBuf,
    clock: Clock,
    /// How programs are confined.
    confinement: ProgramConfinement,
    /// Programs of the last daemon, until they are resumed.
    programs: Vec<KnownProgram>,
    /// When they are resumed: after the applications that hold cores already, ns.
    resume_ns: u64,
}

/// The result of a step of the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RegistrarStep {
    /// The next step is due when something is ready, or after a while.
    Waits,
    /// The daemon stops.
    Ends,
}

impl Registrar {
    pub(super) fn new(
        listener: HostListener,
        outbox: DaemonOutbox,
        settings: Arc<RwLock<DaemonSettings>>,
        dealt: Vec<usize>,
        device: Option<DaemonDevice>,
        wakes: Arc<EventFd>,
        clock: Clock,
    ) -> io::Result<Self> {
        let (socket, state) = {
            let settings = settings.read().expect("nobody panics with it");
            let socket = settings.socket.clone();
            let state = state::path_for(&socket);
            (socket, state)
        };
        let connections = Connections::new(access::own_uid(), &listener, &socket, &wakes)?;
        Ok(Self {
            listener,
            wakes,
            outbox,
            settings,
            dealt,
            connections,
            registered: HashMap::new(),
            device,
            confinement: ProgramConfinement::default(),
            programs: Vec::new(),
            resume_ns: 0,
            state,
            clock,
        })
    }

    /// Serves until `wakes` is rung. Resumes programs of the last daemon after `grace_ns`.
    pub(super) fn run(mut self, grace_ns: u64) {
        thread::name_current("hw-register");
        self.begin(grace_ns);
        loop {
            let mut events = [EpollEvent::empty(); 32];
            let is_soon = !self.programs.is_empty() || self.connections.are_deaf();
            let most = if is_soon { 20 } else { 1000 };
            let ready = self
                .connections
                .epoll
                .wait(&mut events, EpollTimeout::from(most as u16));
            let ready = &events[..ready.unwrap_or(0)];
            if self.step(ready.iter().map(EpollEvent::data)) == RegistrarStep::Ends {
                return self.end();
            }
        }
    }

    fn begin(&mut self, grace_ns: u64) {
        self.listener.serve();
        self.programs = state::read(&self.state, self.connections.own_uid);
        self.resume_ns = self.clock.now_ns() + grace_ns;
    }

    /// Handles what is ready, by its tokens; then what is due.
    fn step(&mut self, ready: impl Iterator<Item = u64>) -> RegistrarStep {
        for token in ready {
            match token {
                LISTENER => self.accept(),
                WAKES => return RegistrarStep::Ends,
                token => self.happened(token),
            }
        }
        let now_ns = self.clock.now_ns();
        if !self.programs.is_empty() && now_ns >= self.resume_ns {
            for program in std::mem::take(&mut self.programs) {
                self.resume_program(&program);
            }
            self.remember();
        }
        self.connections.remove_silent(now_ns);
        self.connections.listen_again(&self.listener, now_ns);
        self.device
            .iter_mut()
            .for_each(|device| device.look(now_ns));
        RegistrarStep::Waits
    }

    fn end(mut self) {
        let (done, ended) = sync_channel(1);
        if self.outbox.send(DaemonOrder::Stop(done)) {
            let _ = ended.recv_timeout(ANSWER);
        }
        for connection in self.connections.all() {
            let _ = packet::send(
                &connection.socket,
                &DaemonMessage::Farewell {}.packet(),
                &[],
            );
        }
        // Those of the last daemon that were not resumed yet are known to nobody else.
        for program in &self.programs {
            self.confinement.let_go(program);
        }
        // Once all are home no later daemon has to know them.
        drop(self.confinement);
        let _ = state::write(&self.state, &[]);
        self.listener.remove();
        let _ = self.wakes.read();
    }

    fn accept(&mut self) {
        let own_uid = self.connections.own_uid;
        let Ok(settings) = self.settings.read() else {
            return;
        };
        let may_register = |who: Connected| {
            let mut rules = settings.apps.iter();
            rules.any(|rule| rule.check_user(who.uid, who.gid, own_uid).is_ok())
        };
        let now_ns = self.clock.now_ns();
        self.connections
            .accept(&self.listener, now_ns, may_register);
    }

    fn happened(&mut self, token: u64) {
        let id = token & !1;
        if token & 1 == 1 {
            return self.retire(id);
        }
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        match self.connections.receive(connection) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(Some(packet)) if !connection.registered => self.hear(id, packet),
            // A registered application sends nothing more, so any event means a hang-up or a breach of the protocol.
            _ => self.hang_up(id),
        }
    }

    fn hang_up(&mut self, id: u64) {
        self.connections.remove(id);
        // A program's connection ends when the program starts; its process continues.
        let is_program = |one: &Registered| one.program.is_some();
        if !self.registered.get(&id).is_some_and(is_program) {
            self.retire(id);
        }
    }

    fn retire(&mut self, id: u64) {
        self.connections.remove(id);
        if let Some(gone) = self.registered.remove(&id) {
            let _ = self.connections.epoll.delete(&gone.end);
            self.outbox.send(DaemonOrder::Retire(id));
            if gone.program.is_some() {
                self.remember();
            }
        }
    }

    fn remember(&self) {
        let programs = self.registered.values();
        let programs = programs.filter_map(|one| one.program.as_ref());
        // After a crash the next daemon has to know those too that were not resumed yet.
        let programs: Vec<_> = programs.chain(&self.programs).cloned().collect();
        if let Err(error) = state::write(&self.state, &programs) {
            say(format_args!(
                "cannot write {}: {error}; a daemon that is started after a crash would not find its programs",
                self.state.display()
            ));
        }
    }

    fn hear(&mut self, id: u64, packet: ForeignPacket) {
        let answer = self.register(id, packet);
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        match answer {
            Ok(Given {
                kthreads,
                memory,
                doorbell,
                network,
            }) => {
                let place = network.as_ref().map(|network| network.place);
                let message = DaemonMessage::Registered {
                    kthreads,
                    network: place,
                };
                let message = message.packet();
                let lanes = network.iter().map(|network| &network.memory);
                let fds = memory.iter().chain([&doorbell]).chain(lanes);
                let fds: Vec<&OwnedFd> = fds.collect();
                // An application that takes no answer is gone.
                if packet::send(&connection.socket, &message, &fds).is_err() {
                    return self.retire(id);
                }
                self.connections.register(id);
            }
            Err(why) => {
                refuse(&connection.socket, &why);
                self.connections.remove(id);
            }
        }
    }

    fn register(&mut self, id: u64, packet: ForeignPacket) -> Result<Given, String> {
        if let Some(fault) = packet.fault {
            return Err(fault.into());
        }
        let message = ClientMessage::parse(&packet.bytes)?;
        let who = self.connections.get(id).ok_or("it hung up")?.who;
        let rule = {
            let settings = self.settings.read().map_err(|_| "the daemon is broken")?;
            settings.rule(message.name())?.clone()
        };
        rule.check_user(who.uid, who.gid, self.connections.own_uid)?;
        self.check_name(message.name())?;
        let connection = self.connections.get(id).ok_or("it hung up")?;
        let peer = PeerProcess::of(connection.socket.as_fd(), who.pid, who.uid)
            .map_err(|error| format!("cannot hold on to process {}: {error}", who.pid))?;
        if !peer.is_unchanged() {
            return Err(format!(
                "process {} is no longer user {}'s",
                who.pid, who.uid
            ));
        }
        peer.check_permission().map_err(|error| {
            format!(
                "cannot move the threads of process {}: {error}; run the daemon as root, or with CAP_SYS_NICE, or as the same user",
                peer.pid()
            )
        })?;
        let gone = |error: io::Error| format!("process {}: {error}", peer.pid());
        if !matches!(message, ClientMessage::Program(_)) && peer.has_own_numbers().map_err(gone)? {
            return Err(format!(
                "process {} is in a PID namespace of its own, where its threads have numbers that the daemon cannot tell: run it in the daemon's (docker run --pid=host)",
                peer.pid()
            ));
        }
        check_cores(&peer, &self.dealt)?;
        let home = peer.affinity().map_err(gone)?;
        let speaker = Speaker { id, peer, home };
        match message {
            ClientMessage::Register(registration) => {
                self.take_in(&rule, &registration, None, speaker)
            }
            ClientMessage::Resume(registration) => {
                let mut fds = packet.fds.into_iter();
                let (lines, lanes, more) = (fds.next(), fds.next(), fds.next());
                let (Some(lines), true, None) =
                    (lines, lanes.is_some() == registration.network, more)
                else {
                    return Err(
                        "to resume takes the application's memory, and its lanes if it has a network"
                            .into(),
                    );
                };
                let brought = BroughtMemory { lines, lanes };
                self.take_in(&rule, &registration, Some(brought), speaker)
            }
            ClientMessage::Program(program) => self.take_program_in(&rule, &program, speaker),
        }
    }

    /// A name belongs to one process. A dead process whose end has not been noticed yet gives it up.
    fn check_name(&mut self, name: &str) -> Result<(), String> {
        let found = self.registered.iter().find(|(_, one)| one.name == name);
        let Some((&id, one)) = found else {
            return Ok(());
        };
        let is_there = std::path::Path::new(&format!("/proc/{}", one.pid)).exists()
            && PeerProcess::open(one.pid).is_ok_and(|peer| !peer.has_ended());
        if is_there {
            return Err(format!(
                "'{name}' is registered already, by process {}: end it, or give this one a name of its own in the daemon's settings",
                one.pid
            ));
        }
        self.retire(id);
        Ok(())
    }

    fn take_in(
        &mut self,
        rule: &AppRule,
        registration: &Registration,
        brought: Option<BroughtMemory>,
        speaker: Speaker,
    ) -> Result<Given, String> {
        let asked = registration.kthreads;
        let shape = rule.shape(Some(asked), registration.guaranteed, self.dealt.len())?;
        let resumed = brought.is_some();
        let (memory, lines, lanes) = match brought {
            Some(BroughtMemory {
                lines: memory,
                lanes,
            }) => {
                let lines =
                    SharedLines::adopt(&memory, asked).map_err(|error| error.to_string())?;
                if asked > shape.most {
                    return Err(format!(
                        "'{}' has {asked} kthreads, and may have {} cores: start it anew",
                        rule.name, shape.most
                    ));
                }
                (memory.into_known(), lines, lanes)
            }
            None => {
                let made = SharedLines::create(shape.most).map_err(|error| error.to_string())?;
                (made.0, made.1, None)
            }
        };
        let mtu = self.device.as_ref().map(|device| device.mtu);
        let network = if registration.network {
            Some(network_of(rule, mtu, lanes, lines.kthreads())?)
        } else {
            None
        };
        let (network, given) = network.unzip();
        let work = NewcomerWork::Kthreads {
            lines,
            probes: registration.probes,
            resumed,
        };
        let doorbell = self.admit(&rule.name, shape, work, network, speaker, None)?;
        Ok(Given {
            kthreads: shape.most,
            memory: Some(memory),
            doorbell,
            network: given,
        })
    }

    fn take_program_in(
        &mut self,
        rule: &AppRule,
        program: &ProgramRegistration,
        mut speaker: Speaker,
    ) -> Result<Given, String> {
        if rule.kind != AppKind::Batch {
            return Err(format!(
                "'{}' is latency-critical in the daemon's settings: a program that knows nothing of the daemon must be of class batch",
                rule.name
            ));
        }
        let shape = rule.shape(program.cores, None, self.dealt.len())?;
        let programs = self.registered.values();
        let programs = programs.filter_map(|one| one.program.as_ref());
        let homes = self.confinement.homes_of(&speaker, programs);
        let groups = self.confinement.confine(&rule.name, &homes, &mut speaker);
        let home = (0..CpuSet::count()).filter(|&core| speaker.home.is_set(core) == Ok(true));
        let known = KnownProgram {
            name: rule.name.clone(),
            pid: speaker.peer.pid(),
            uid: Some(speaker.peer.uid()),
            started: speaker.peer.started().unwrap_or_default(),
            home: home.collect(),
            most: shape.most,
            groups,
        };
        let doorbell = self.admit(
            &rule.name,
            shape,
            NewcomerWork::Program,
            None,
            speaker,
            Some(known),
        )?;
        self.remember();
        Ok(Given {
            kthreads: shape.most,
            memory: None,
            doorbell,
            network: None,
        })
    }

    /// Takes over a program of the last daemon, if its process is still the same.
    fn resume_program(&mut self, known: &KnownProgram) {
        let rule = match self.settings.read() {
            Ok(settings) => settings.rule(&known.name).cloned(),
            Err(_) => return,
        };
        let (Ok(rule), Some(peer)) = (rule, known.process()) else {
            return self.confinement.let_go(known);
        };
        if self.check_name(&known.name).is_err() {
            return self.confinement.let_go(known);
        }
        let Ok(shape) = rule.shape(Some(known.most), None, self.dealt.len()) else {
            return self.confinement.let_go(known);
        };
        let id = self.connections.new_id();
        let home = mask(known.home.iter().copied());
        let mut speaker = Speaker { id, peer, home };
        let (confinement, name) = (&mut self.confinement, &rule.name);
        let known = KnownProgram {
            groups: confinement.confine(name, &known.groups, &mut speaker),
            ..known.clone()
        };
        if let Err(why) = self.admit(
            &rule.name,
            shape,
            NewcomerWork::Program,
            None,
            speaker,
            Some(known),
        ) {
            say(format_args!(
                "program '{}' is not taken over: {why}",
                rule.name
            ));
        }
    }

    /// Hands the newcomer to the pass thread. Returns the application's doorbell.
    fn admit(
        &mut self,
        name: &str,
        shape: AppShape,
        work: NewcomerWork,
        network: Option<NewNetwork>,
        speaker: Speaker,
        program: Option<KnownProgram>,
    ) -> Result<OwnedFd, String> {
        let Speaker { id, peer, home } = speaker;
        let system = |error: io::Error| format!("the daemon lacks something: {error}");
        let end = peer.end().map_err(system)?;
        let registered = Registered {
            name: name.to_owned(),
            pid: peer.pid(),
            end,
            program,
        };
        let bell = event().map_err(system)?;
        let doorbell = bell.as_fd().try_clone_to_owned().map_err(system)?;
        let newcomer = Newcomer {
            id,
            name: name.to_owned(),
            shape,
            work,
            peer,
            home,
        };
        let (answer, answered) = sync_channel(1);
        let claim = AdmissionClaim::default();
        self.outbox.send(DaemonOrder::Admit {
            newcomer: Box::new(newcomer),
            doorbell: OwnedFd::from(bell),
            network,
            claim: claim.clone(),
            answer,
        });
        match answered.recv_timeout(ANSWER) {
            Ok(admitted) => admitted.map_err(|error| error.to_string())?,
            Err(_) => {
                // What is admitted at this moment is retired by the next order.
                if !claim.take() {
                    self.outbox.send(DaemonOrder::Retire(id));
                }
                return Err("the daemon ends, or is stuck: try again".into());
            }
        }
        let interest = EpollEvent::new(EpollFlags::EPOLLIN, id | 1);
        self.connections
            .epoll
            .add(&registered.end, interest)
            .map_err(|error| system(error.into()))?;
        self.registered.insert(id, registered);
        Ok(doorbell)
    }
}

#[cfg(test)]
mod tests;
