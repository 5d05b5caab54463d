//! Where the socket of a running server lies, by which commands of the same user reach it.
//!
//! A folder that only its user can open holds a socket for each server, named after the address of
//! its clients. So who knows the address finds the socket, whether the server's data lies in memory
//! or in a file of any folder.
//!
//! Not here: what is answered there (`heatsink_gateway::http`), what is asked (`ask_server`,
//! `server_store`).

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::address;
use super::place::{self, Place};
use crate::exit::{Exit, in_words};

/// What others than the owner may do with the folder: nothing.
const OF_OTHERS: u32 = 0o077;

/// A socket that listens. Its file goes when this is dropped.
pub struct OperatorSocket {
    pub path: PathBuf,
    pub listener: UnixListener,
    pub file: SocketFile,
}

/// The file of a socket, removed when this is dropped, unless another server has put its own there.
pub struct SocketFile {
    path: PathBuf,
    made: Made,
}

impl SocketFile {
    /// The file of the socket that this process has just put there.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(SocketFile { made: made(path)?, path: path.to_owned() })
    }
}

/// Which file it is: its inode and when that was made. Numbers of inodes are used again.
type Made = (u64, i64, i64);

fn made(path: &Path) -> io::Result<Made> {
    path.symlink_metadata().map(|file| (file.ino(), file.ctime(), file.ctime_nsec()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if made(&self.path).is_ok_and(|made| made == self.made) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Listens for commands to the server whose clients use that place. Without it the server works,
/// and its commands do not find it: why is logged. `follows`: another server may have the same
/// place still, and commands go to this one from now on.
pub fn listen(clients: &Place, follows: bool) -> Option<OperatorSocket> {
    let mut why = String::new();
    for folder in folders() {
        match listen_in(&folder, clients, follows) {
            Ok(socket) => return Some(socket),
            Err(error) => why = format!("{why}{}: {}; ", folder.display(), in_words(&error)),
        }
    }
    tracing::warn!(
        "commands such as `heatsink top` will not find this server, which has no socket for them: {}",
        why.trim_end_matches("; ")
    );
    None
}

fn listen_in(folder: &Path, clients: &Place, follows: bool) -> io::Result<OperatorSocket> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => check_private(folder)?,
    }
    let path = path_in(folder, clients);
    // The address is this server's: what a killed one has left behind answers no more. What answers
    // is in another network namespace, and stays.
    match UnixStream::connect(&path) {
        Ok(_) if !follows => return Err(io::Error::other("a server of this address answers there")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        _ => std::fs::remove_file(&path)?,
    }
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    let file = SocketFile::of(&path)?;
    Ok(OperatorSocket { path, listener, file })
}

/// The socket of a server of this user, by what `--server` says: the address or endpoint of its
/// clients, or the socket itself. `None` where no server of this user answers.
///
/// # Errors
/// Exit 64 for an address that may not be asked.
pub fn find(written: &str) -> Result<Option<PathBuf>, Exit> {
    if let Some(socket) = named(written) {
        return Ok(Some(socket));
    }
    Ok(find_at(&address::loopback("--server", host_and_port(written))?))
}

/// The socket of the server of this user whose clients use one of these addresses.
pub fn find_at(addresses: &[SocketAddr]) -> Option<PathBuf> {
    let places: Vec<Place> = addresses.iter().copied().map(Place::Tcp).collect();
    paths_of(&places).find(|path| UnixStream::connect(path).is_ok())
}

fn paths_of(places: &[Place]) -> impl Iterator<Item = PathBuf> {
    let folders = folders().into_iter().filter(|folder| check_private(folder).is_ok());
    folders.flat_map(|folder| places.iter().map(move |place| path_in(&folder, place)))
}

/// The socket that `--server` names: itself, or by the Unix socket of the server's clients.
pub fn named(written: &str) -> Option<PathBuf> {
    if let Some(clients) = place::unix(written) {
        let clients = std::path::absolute(clients).unwrap_or_else(|_| clients.to_owned());
        let paths: Vec<PathBuf> = paths_of(&[Place::Unix(clients)]).collect();
        let answers = paths.iter().find(|path| UnixStream::connect(path).is_ok());
        return Some(answers.or(paths.first()).cloned().unwrap_or_else(|| PathBuf::from(written)));
    }
    is_path(written).then(|| PathBuf::from(written))
}

/// Whether `--server` names a socket, and no address.
pub fn is_path(written: &str) -> bool {
    !written.contains("://") && host_and_port(written).contains('/')
}

/// `HOST:PORT` of an address or endpoint.
pub fn host_and_port(written: &str) -> &str {
    written.trim_start_matches("http://").trim_start_matches("https://").trim_end_matches('/')
}

/// Where sockets may lie, in the order in which a server tries them: the folder that systems make
/// for what runs of a user, else one for temporary files.
fn folders() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute()).map(|folder| folder.join("heatsink"));
    runtime.into_iter().chain([std::env::temp_dir().join(format!("heatsink-{user}"))]).collect()
}

fn path_in(folder: &Path, clients: &Place) -> PathBuf {
    match clients {
        Place::Tcp(address) => folder.join(format!("{address}.sock")),
        // A path may be as long as that of a socket can be.
        Place::Unix(path) => {
            let hash = md5::compute(path.as_os_str().as_encoded_bytes());
            folder.join(format!("unix-{hash:x}.sock"))
        }
    }
}

/// Checks that nobody but this user can put a socket there, or open one.
fn check_private(folder: &Path) -> io::Result<()> {
    // Of a link itself, not of what it points at.
    let about = folder.symlink_metadata()?;
    let mode = about.mode() & 0o777;
    if !about.is_dir() {
        return Err(io::Error::other("it is no folder"));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it is another user's"));
    }
    if mode & OF_OTHERS != 0 {
        return Err(io::Error::other(format!("others may use it (mode {mode:04o}): `chmod 700` it")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the files of a test have the system's times")]
    fn a_socket_lies_where_only_its_user_comes() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _inside = runtime.enter();
        let place = std::env::temp_dir().join(format!("heatsink-socket-test-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir(&place).unwrap();
        let (folder, at) = (place.join("own"), Place::Tcp(SocketAddr::from(([127, 0, 0, 1], 1))));
        let first = listen_in(&folder, &at, false).unwrap();
        let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&first.path)), (0o700, 0o600));
        // One that answers is not taken away, one that does not is.
        assert!(listen_in(&folder, &at, false).is_err());
        drop(first.listener);
        // Files made within one tick of the system's clock are told by their inodes alone.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let second = listen_in(&folder, &at, false).unwrap();
        drop(first.file);
        assert!(second.path.exists(), "the second server's own");
        let path = second.path.clone();
        drop(second);
        assert!(!path.exists());
        for open_to_others in [0o755, 0o770, 0o701] {
            std::fs::set_permissions(&folder, Permissions::from_mode(open_to_others)).unwrap();
            assert!(listen_in(&folder, &at, false).is_err(), "{open_to_others:o}");
        }
        std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(&folder, place.join("link")).unwrap();
        assert!(listen_in(&place.join("link"), &at, false).is_err());
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_path_is_told_from_an_address() {
        for path in ["/run/user/1/heatsink/127.0.0.1:8000.sock", "./a.sock", "a/b"] {
            assert!(is_path(path), "{path}");
        }
        for address in
            ["127.0.0.1:8000", "localhost:8000", "http://127.0.0.1:8000/", "127.0.0.1:8000/", "[::1]:8000"]
        {
            assert!(!is_path(address), "{address}");
        }
    }
}
