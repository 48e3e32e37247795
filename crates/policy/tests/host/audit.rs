//! The owner of each core, derived from the moves alone.

use headway_policy::host::{AppId, AppShape, CoreId, HeldCore, HostShape, Move, Tenant};

/// Books of its own, against the allocator's.
pub(crate) struct Audit {
    pub(crate) shape: HostShape,
    pub(crate) tenants: Vec<Option<Tenant>>,
    pub(crate) leaving: Vec<bool>,
}

impl Audit {
    pub(crate) fn new(shape: &HostShape) -> Self {
        let cores = shape.topology.cores();
        Self {
            shape: shape.clone(),
            tenants: vec![None; cores],
            leaving: vec![false; cores],
        }
    }

    pub(crate) fn has(&self, app: AppId, leaving_too: bool) -> usize {
        let mut count = 0;
        for (tenant, leaving) in self.tenants.iter().zip(&self.leaving) {
            let there = tenant.is_some_and(|tenant| tenant.app == app);
            count += usize::from(there && (leaving_too || !leaving));
        }
        count
    }

    /// Carries a move out; `idle_first`: nothing may be taken while a core is idle, nor from a guarantee.
    pub(crate) fn carry_out(&mut self, decision: Move, idle_first: bool) {
        match decision {
            Move::Grant { core, to } => {
                assert_eq!(self.tenants[core.index()], None, "{core:?} has a tenant");
                assert!(
                    !self.tenants.contains(&Some(to)),
                    "{to:?} has a core already"
                );
                let most = self.shape.apps[to.app.index()].most;
                assert!(to.kthread.index() < most, "no such kthread: {to:?}");
                self.tenants[core.index()] = Some(to);
                assert!(self.has(to.app, false) <= most, "{to:?} has too much");
            }
            Move::Revoke { core, from } => {
                assert_eq!(self.tenants[core.index()], Some(from));
                assert!(!self.leaving[core.index()], "{core:?} revoked twice");
                if idle_first {
                    let guaranteed = self.shape.apps[from.app.index()].guaranteed;
                    assert!(
                        self.has(from.app, false) > guaranteed,
                        "{from:?} was guaranteed it"
                    );
                    assert!(self.tenants.iter().all(Option::is_some), "a core is idle");
                }
                self.leaving[core.index()] = true;
            }
            Move::Evict { core, from } => {
                assert_eq!(self.tenants[core.index()], Some(from));
                assert!(
                    self.leaving[core.index()],
                    "it was told to leave before it is moved away"
                );
            }
        }
    }

    /// An application that came with some cores of its own: those that were idle are its own now.
    pub(crate) fn admit(&mut self, app: AppId, shape: AppShape, holding: &[HeldCore]) {
        self.shape.apps[app.index()] = shape;
        for held in holding {
            let to = Tenant {
                app,
                kthread: held.kthread,
            };
            let known = held.kthread.index() < shape.most && !self.tenants.contains(&Some(to));
            if let Some(tenant @ None) = self.tenants.get_mut(held.core.index())
                && known
            {
                *tenant = Some(to);
            }
        }
    }

    pub(crate) fn retire(&mut self, app: AppId) {
        self.shape.apps[app.index()] = AppShape::VACANT;
        for core in 0..self.tenants.len() {
            if self.tenants[core].is_some_and(|tenant| tenant.app == app) {
                self.release(CoreId(core as u16));
            }
        }
    }

    pub(crate) fn guaranteed(&self) -> usize {
        self.shape.apps.iter().map(|app| app.guaranteed).sum()
    }

    pub(crate) fn release(&mut self, core: CoreId) {
        self.tenants[core.index()] = None;
        self.leaving[core.index()] = false;
    }

    pub(crate) fn agrees_with(&self, cores: &headway_policy::host::Cores) {
        for (index, tenant) in self.tenants.iter().enumerate() {
            let core = CoreId(index as u16);
            assert_eq!(cores.tenant(core), *tenant);
            assert_eq!(cores.idle().contains(index), tenant.is_none());
            assert_eq!(cores.is_leaving(core), self.leaving[index]);
        }
        for (index, app) in self.shape.apps.iter().enumerate() {
            let id = AppId(index as u16);
            assert_eq!(cores.active(id).len(), self.has(id, true));
            assert_eq!(cores.kept(id), self.has(id, false));
            assert!(cores.held(id) <= app.most);
        }
    }
}
