//! Which addresses a web hook may reach: those of the public network, unless the settings allow others.

use super::send::CONNECT_LIMIT;
use crate::config::WebHookConfig;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

/// Whether an address belongs to the public network, however it is written.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        [0 | 10 | 127, ..]
        | [100, 64..=127, ..]
        | [169, 254, ..]
        | [172, 16..=31, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [192, 168, ..]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => true,
        // Multicast, reserved, broadcast.
        [first, ..] => first >= 224,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    match segments {
        // NAT64: the IPv4 address behind it counts.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Teredo, ORCHID, 6to4 and documentation lie inside the global range; the first and third lead into IPv4.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x2002, ..] => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        // Global unicast; loopback, unique-local, link-local, multicast and the rest lie outside it.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// A name stands for no address that may be reached.
#[derive(Debug, thiserror::Error)]
#[error("the address is inside the server's own network")]
pub(super) struct Inside;

/// Looks names up and gives back public addresses alone. The connection goes to just these, so that a name cannot stand
/// for one address when it is checked and for another when it is used.
#[derive(Debug)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(Inside.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Tries whether a receiver can be connected to, and says nothing to it.
///
/// # Errors
/// Why it cannot, for people; the address is not in it.
pub(crate) async fn connect(config: &WebHookConfig, url: &Url) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let found = timeout(CONNECT_LIMIT, lookup_host((host, url.port_or_known_default().unwrap_or(0)))).await;
    let found = found.map_err(|_| "its name is not found in time")?.map_err(|_| "its name is not known (DNS)")?;
    let allowed: Vec<SocketAddr> = found.filter(|at| config.allow_private || is_public(at.ip())).collect();
    let mut why = Inside.to_string();
    for at in allowed {
        match timeout(CONNECT_LIMIT, TcpStream::connect(at)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => "it does not answer".clone_into(&mut why),
        }
    }
    Err(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_public_network_are_told_from_all_others() {
        for public in [
            "1.1.1.1",
            "100.63.0.1",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.1",
            "2606:4700::1111",
            "240e::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for inside in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1.1.1.1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(inside.parse().unwrap()), "{inside}");
        }
    }
}
