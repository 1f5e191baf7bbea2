//! Which addresses may be reached. Whoever defines a rule must not be able to reach through the server what only the
//! server can reach: the machine itself, its network, the metadata of its cloud (ADR-166).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use servo_engine::notification::SendFailure;

use crate::{again, never};

/// The message about an address that may not be reached.
pub(crate) const PRIVATE: &str =
    "it is at a private address; `servo config set notify_private_addresses=1` allows that";

/// Whether an address belongs to everybody.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_reserved = first == 0
        || first >= 240
        || (first == 100 && (64..128).contains(&second))
        || (first == 192 && second == 0 && third == 0)
        || (first == 198 && (18..20).contains(&second));
    !(is_reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    let last = Ipv4Addr::from((u32::from(parts[6]) << 16) | u32::from(parts[7]));
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    if parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return is_public_v4(last);
    }
    if parts[0] == 0x2002 {
        return is_public_v4(Ipv4Addr::from((u32::from(parts[1]) << 16) | u32::from(parts[2])));
    }
    // The rest of the first eighth of the addresses that are given out.
    (0x2000..0x4000).contains(&parts[0]) && parts[..2] != [0x2001, 0x0db8] && parts[..2] != [0x2001, 0]
}

/// The addresses of a host that may be reached: all of them, or none.
pub(crate) async fn resolve(host: &str, port: u16, private: bool) -> Result<Vec<SocketAddr>, SendFailure> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await;
    let found: Vec<SocketAddr> =
        found.map_err(|error| again(format!("{host} cannot be found: {error}")))?.collect();
    if found.is_empty() {
        return Err(again(format!("{host} has no address")));
    }
    if !private && !found.iter().all(|address| is_public(address.ip())) {
        return Err(never(format!("{host} is not reached: {PRIVATE}")));
    }
    Ok(found)
}

/// Finds hosts whose addresses are all public. What is found is what is connected to: a name that changes its mind in
/// between gains nothing.
pub(crate) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = resolve(&host, 0, false).await.map_err(|failure| failure.message)?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_machines_networks_and_clouds_are_private() {
        let private = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "192.0.0.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2001:db8::1",
        ];
        for text in private {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["1.1.1.1", "8.8.8.8", "100.128.0.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
