//! A CA of a test's own, and a certificate for a server.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A CA and the certificate that it gave to a server.
#[derive(Debug)]
pub struct Authority(TempDir);

fn openssl(folder: &Path, arguments: &str) {
    let made = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

impl Authority {
    /// Makes a CA, and a certificate for a server of this name (`IP:…` or `DNS:…`): `leaf.pem` and `leaf.key`.
    pub fn make(server: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        openssl(folder.path(), &format!("{new} -keyout ca.key -out ca.pem -subj /CN=test-ca"));
        let leaf = format!("-addext subjectAltName={server} -addext basicConstraints=critical,CA:FALSE");
        openssl(
            folder.path(),
            &format!("{new} {leaf} -CA ca.pem -CAkey ca.key -keyout leaf.key -out leaf.pem -subj /CN=server"),
        );
        Self(folder)
    }

    /// Where its files lie.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// One of its files.
    pub fn file(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// The CA's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }
}
