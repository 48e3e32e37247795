//! Who has which core: the books that every allocator keeps, and what must always hold of them.
//!
//! 1. A core is idle or has one tenant; a kthread has at most one core.
//! 2. No application holds more cores than its [`most`](super::AppShape::most).
//!
//! An application *keeps* the cores it has and is not told to leave; it *holds* those and the ones it was
//! promised: a core that is being revoked counts for its successor already.

use super::ids::{AppId, CoreId, KthreadId};
use super::kthreads::Kthreads;
use super::moves::{HeldCore, Move, Tenant};
use super::shape::{AppKind, AppShape, HostShape, ShapeError};
use super::topology::HostTopology;
use crate::BitSet;
use alloc::vec::Vec;

#[derive(Clone, Copy, Default)]
struct CoreTenancy {
    tenant: Option<Tenant>,
    /// Told to leave.
    leaving: bool,
    /// Who is promised the core that is being left.
    successor: Option<Tenant>,
}

#[derive(Clone)]
struct AppCores {
    shape: AppShape,
    kthreads: Kthreads,
    /// Cores with a kthread on them, those being left included.
    active: BitSet,
    /// How many of them it was told to leave.
    leaving: usize,
    promised: usize,
    last_released: Option<CoreId>,
}

impl AppCores {
    fn new(shape: AppShape, cores: usize) -> Self {
        Self {
            shape,
            kthreads: Kthreads::new(shape.most, cores),
            active: BitSet::EMPTY,
            leaving: 0,
            promised: 0,
            last_released: None,
        }
    }
}

/// What a released core was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Released {
    pub(super) from: Tenant,
    /// Whether it was taken, not given.
    pub(super) forced: bool,
    /// Who waited for it.
    pub(super) successor: Option<Tenant>,
}

/// Who has which core.
#[derive(Clone)]
pub struct Cores {
    topology: HostTopology,
    cores: Vec<CoreTenancy>,
    idle: BitSet,
    apps: Vec<AppCores>,
}

impl Cores {
    /// All cores idle.
    ///
    /// # Panics
    /// When the shape does not pass its [check](HostShape::check_slots).
    #[must_use]
    pub fn new(shape: &HostShape) -> Self {
        shape
            .check_slots()
            .unwrap_or_else(|error| panic!("{error}"));
        let cores = shape.topology.cores();
        Self {
            topology: shape.topology.clone(),
            cores: alloc::vec![CoreTenancy::default(); cores],
            idle: BitSet::range(0, cores),
            apps: shape
                .apps
                .iter()
                .map(|&shape: &AppShape| AppCores::new(shape, cores))
                .collect(),
        }
    }

    /// How many slots for applications there are, vacant ones included.
    #[must_use]
    pub fn apps(&self) -> usize {
        self.apps.len()
    }

    /// How many cores there are.
    #[must_use]
    pub fn total(&self) -> usize {
        self.cores.len()
    }

    /// Whether an application of this shape can have this slot beside those that are there: guarantees are never oversubscribed.
    ///
    /// # Errors
    /// [`ShapeError`], with `app` where it says which.
    pub fn check_admission(&self, app: AppId, shape: AppShape) -> Result<(), ShapeError> {
        let mut apps: Vec<_> = self.apps.iter().map(|app| app.shape).collect();
        let Some(slot) = apps.get_mut(app.index()).filter(|slot| slot.is_vacant()) else {
            return Err(ShapeError::Taken { app: app.index() });
        };
        *slot = shape;
        if shape.is_vacant() {
            let AppShape {
                guaranteed, most, ..
            } = shape;
            return Err(ShapeError::Limits {
                app: app.index(),
                guaranteed,
                most,
                cores: self.total(),
            });
        }
        HostShape {
            topology: self.topology.clone(),
            apps,
            seed: 0,
        }
        .check_slots()
    }

    /// Cores nobody has.
    #[inline]
    #[must_use]
    pub fn idle(&self) -> &BitSet {
        &self.idle
    }

    /// Who has the core.
    ///
    /// # Panics
    /// When there is no such core.
    #[inline]
    #[must_use]
    pub fn tenant(&self, core: CoreId) -> Option<Tenant> {
        self.cores[core.index()].tenant
    }

    /// Whether the core's tenant was told to leave it.
    ///
    /// # Panics
    /// When there is no such core.
    #[inline]
    #[must_use]
    pub fn is_leaving(&self, core: CoreId) -> bool {
        self.cores[core.index()].leaving
    }

    /// Cores with a kthread of the application on them.
    ///
    /// # Panics
    /// Here and below, when there is no such application.
    #[inline]
    #[must_use]
    pub fn active(&self, app: AppId) -> &BitSet {
        &self.apps[app.index()].active
    }

    /// Cores the application has and was not told to leave.
    #[inline]
    #[must_use]
    pub fn kept(&self, app: AppId) -> usize {
        let app = &self.apps[app.index()];
        app.active.len() - app.leaving
    }

    /// Cores the application keeps, and those it was promised.
    #[inline]
    #[must_use]
    pub fn held(&self, app: AppId) -> usize {
        self.kept(app) + self.apps[app.index()].promised
    }

    /// What the application is entitled to.
    #[inline]
    #[must_use]
    pub fn shape(&self, app: AppId) -> AppShape {
        self.apps[app.index()].shape
    }

    /// Whether it keeps more than its guarantee: then cores may be taken from it.
    #[inline]
    #[must_use]
    pub fn is_bursting(&self, app: AppId) -> bool {
        self.kept(app) > self.shape(app).guaranteed
    }

    /// The core that the application gave back or lost last.
    #[inline]
    #[must_use]
    pub fn last_released(&self, app: AppId) -> Option<CoreId> {
        self.apps[app.index()].last_released
    }

    /// The kthreads of the application that have cores.
    pub fn active_kthreads(&self, app: AppId) -> impl Iterator<Item = KthreadId> + '_ {
        self.active(app)
            .iter()
            .filter_map(|core: usize| self.cores[core].tenant.map(|tenant| tenant.kthread))
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = AppId> + use<> {
        (0..self.apps.len() as u16).map(AppId)
    }

    pub(super) fn topology(&self) -> &HostTopology {
        &self.topology
    }

    pub(super) fn is_batch(&self, app: AppId) -> bool {
        self.shape(app).kind == AppKind::Batch
    }

    /// Whether the application may hold one more core.
    pub(super) fn has_room(&self, app: AppId) -> bool {
        self.held(app) < self.shape(app).most
    }

    /// An application takes a vacant slot, with the cores that it holds already where they are idle.
    ///
    /// # Panics
    /// When it cannot be [admitted](Self::check_admission).
    pub(super) fn admit(&mut self, app: AppId, shape: AppShape, holding: &[HeldCore]) {
        self.check_admission(app, shape)
            .unwrap_or_else(|error| panic!("{error}"));
        self.apps[app.index()] = AppCores::new(shape, self.total());
        for &HeldCore { core, kthread } in holding {
            let is_idle = core.index() < self.total() && self.idle.contains(core.index());
            if is_idle && self.apps[app.index()].kthreads.take_this(kthread, core) {
                self.settle(core, Tenant { app, kthread });
            }
        }
    }

    /// The application is gone, and has no core any more. What it was promised, nobody is.
    pub(super) fn vacate(&mut self, app: AppId) {
        assert!(self.active(app).is_empty(), "{app:?} has cores");
        for core in &mut self.cores {
            core.successor.take_if(|successor| successor.app == app);
        }
        self.apps[app.index()] = AppCores::new(AppShape::VACANT, self.cores.len());
    }

    /// Kthreads that were interrupted: see [`Kthreads::set_interrupted`].
    pub(super) fn set_interrupted(&mut self, app: AppId, interrupted: &BitSet) {
        self.apps[app.index()].kthreads.set_interrupted(interrupted);
    }

    /// Gives an idle core to an application that has room; `None` while all its kthreads are still on
    /// cores they are leaving.
    pub(super) fn grant(&mut self, core: CoreId, app: AppId) -> Option<Move> {
        assert!(self.idle.contains(core.index()), "{core:?} is not idle");
        assert!(self.has_room(app), "{app:?} has all it may have");
        let kthread = self.apps[app.index()].kthreads.take(core)?;
        Some(self.settle(core, Tenant { app, kthread }))
    }

    /// The core that was promised to this kthread is idle now.
    pub(super) fn keep_promise(&mut self, core: CoreId, to: Tenant) -> Move {
        self.apps[to.app.index()].promised -= 1;
        self.settle(core, to)
    }

    fn settle(&mut self, core: CoreId, to: Tenant) -> Move {
        self.idle.remove(core.index());
        self.cores[core.index()].tenant = Some(to);
        self.apps[to.app.index()].active.insert(core.index());
        Move::Grant { core, to }
    }

    /// Takes a core from whoever has it, for `successor` where one is named; `None` when nobody has it
    /// or the successor has no parked kthread.
    pub(super) fn revoke(&mut self, core: CoreId, successor: Option<AppId>) -> Option<Move> {
        let from = self.tenant(core)?;
        assert!(!self.is_leaving(core), "{core:?} was already taken");
        let promised = match successor {
            None => None,
            Some(app) => {
                assert!(self.has_room(app), "{app:?} has all it may have");
                let kthread = self.apps[app.index()].kthreads.take(core)?;
                self.apps[app.index()].promised += 1;
                Some(Tenant { app, kthread })
            }
        };
        self.apps[from.app.index()].leaving += 1;
        let core_state = &mut self.cores[core.index()];
        core_state.leaving = true;
        core_state.successor = promised;
        Some(Move::Revoke { core, from })
    }

    /// The core's tenant has left it.
    pub(super) fn release(&mut self, core: CoreId) -> Released {
        let CoreTenancy {
            tenant,
            leaving,
            successor,
        } = core::mem::take(&mut self.cores[core.index()]);
        let Some(from) = tenant else {
            panic!("nobody has {core:?}, so nobody can leave it");
        };
        let app = &mut self.apps[from.app.index()];
        app.active.remove(core.index());
        app.kthreads.park(from.kthread);
        app.last_released = Some(core);
        app.leaving -= usize::from(leaving);
        self.idle.insert(core.index());
        Released {
            from,
            forced: leaving,
            successor,
        }
    }
}
