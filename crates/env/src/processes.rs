//! Whether another process has ended, where the system can tell.

use std::fmt::Debug;

/// Tells of processes whether they have ended.
pub trait Processes: Debug + Send + Sync {
    /// The mark of this process, by which others ask for it; no two processes have the same. `None`
    /// where nobody could tell.
    fn own(&self) -> Option<String>;
    /// Whether the process with this mark has certainly ended: none of its threads runs or can run
    /// again. `false` where that is not known, such as of a process on another machine.
    fn has_ended(&self, mark: &str) -> bool;
}

/// The processes of this machine.
///
/// On Linux each holds a socket in the abstract namespace under a name of its own for as long as it
/// lives, stopped or not. Where that name is free the kernel has let the process go. The namespace
/// belongs to a network namespace, so only processes of the same one are told of: those of one
/// host, or the containers of one pod.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealProcesses;

#[cfg(target_os = "linux")]
impl Processes for RealProcesses {
    fn own(&self) -> Option<String> {
        linux::own().map(|own| own.mark.clone())
    }

    fn has_ended(&self, mark: &str) -> bool {
        linux::has_ended(mark)
    }
}

#[cfg(not(target_os = "linux"))]
impl Processes for RealProcesses {
    fn own(&self) -> Option<String> {
        None
    }

    fn has_ended(&self, _mark: &str) -> bool {
        false
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    use std::sync::OnceLock;
    use std::{fs, io};

    use crate::{Env, RealEnv};

    pub struct Own {
        pub mark: String,
        /// Nothing ever connects to it. It is closed by the kernel, when the last thread has ended.
        _held: UnixListener,
    }

    /// This process, which holds its name from the first call on.
    pub fn own() -> Option<&'static Own> {
        static OWN: OnceLock<Option<Own>> = OnceLock::new();
        let make = || {
            let name = format!("{:016x}{:016x}", RealEnv.random(), RealEnv.random());
            Some(Own { mark: format!("{}/{name}", place()?), _held: bind(&name).ok()? })
        };
        OWN.get_or_init(make).as_ref()
    }

    pub fn has_ended(mark: &str) -> bool {
        // Names mean something in their own place alone.
        match (mark.rsplit_once('/'), own().and_then(|own| own.mark.rsplit_once('/'))) {
            (Some((place, name)), Some((here, own))) => {
                place == here && name.len() == own.len() && bind(name).is_ok()
            }
            _ => false,
        }
    }

    /// This boot of this machine, and the network namespace. Machines that were copied while they
    /// ran share their boot, but not their name.
    fn place() -> Option<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let network = fs::read_link("/proc/self/ns/net").ok()?;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Some(format!("{host}/{}/{}", boot.trim(), network.to_str()?))
    }

    fn bind(name: &str) -> io::Result<UnixListener> {
        UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("heatsink-{name}"))?)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_ended_when_nobody_holds_its_name_in_its_place() {
        let own = RealProcesses.own().unwrap();
        assert_eq!(RealProcesses.own().unwrap(), own);
        assert!(!RealProcesses.has_ended(&own), "this one lives");
        let (place, name) = own.rsplit_once('/').unwrap();
        let other = format!("{place}/{}", name.chars().rev().collect::<String>());
        assert!(RealProcesses.has_ended(&other));
        for unknown in
            [&format!("elsewhere{other}"), name, "", "/", &format!("{place}/"), &format!("{place}/x")]
        {
            assert!(!RealProcesses.has_ended(unknown), "{unknown}");
        }
    }
}
