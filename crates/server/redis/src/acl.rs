//! ACL: the users of the server, and the categories of commands. Users come from the passwords' file alone.

use nuthatch_commands::context::Context;
use nuthatch_resp::{Acl, Error, Writer};
use nuthatch_security::passwords::Role;

use crate::session::DEFAULT_USER;

/// Executes `command` for a client that `user` has logged in at.
pub fn command(cx: &Context<'_, '_>, writer: &mut Writer<'_>, user: &[u8], command: Acl<'_>) {
    match command {
        Acl::WhoAmI => return writer.bulk(user),
        Acl::Categories => return writer.categories(),
        Acl::Category(commands) => return writer.category(commands),
        Acl::Users | Acl::List | Acl::User(_) => {}
    }
    let security = &cx.shared.security;
    let has_passwords = security.has_passwords();
    if has_passwords && !cx.info.is_administrator() {
        return writer.error(&Error::ACL_FORBIDDEN);
    }
    // A server without passwords has Redis' default user.
    let nobody = [(DEFAULT_USER.into(), Role::Administrator)];
    let users = security.users();
    let users = users.as_deref().unwrap_or(&nobody);
    if let Acl::User(name) = command {
        return match users.iter().find(|(user, _)| **user == *name) {
            Some((_, role)) => describe(writer, *role, has_passwords),
            None => writer.null(),
        };
    }
    writer.array(users.len());
    for (name, role) in users {
        match command {
            Acl::List => {
                let flags = if has_passwords { "on" } else { "on nopass" };
                let rest = format!(" {flags} ~* &* {}", may(*role));
                writer.bulk(&[b"user ", &name[..], rest.as_bytes()].concat());
            }
            _ => writer.bulk(name),
        }
    }
}

/// What a user may do, in Redis' words.
fn may(role: Role) -> &'static str {
    match role {
        Role::Administrator => "+@all",
        Role::User => "+@all -@admin",
    }
}

/// ACL GETUSER. Passwords are never shown, nor anything made of them.
fn describe(writer: &mut Writer<'_>, role: Role, has_password: bool) {
    let flags: &[&str] = if has_password {
        &["on"]
    } else {
        &["on", "nopass"]
    };
    writer.map(6);
    writer.bulk(b"flags");
    writer.set(flags.len());
    flags.iter().for_each(|flag| writer.status(flag));
    for nothing in ["passwords", "selectors"] {
        writer.bulk(nothing.as_bytes());
        writer.array(0);
    }
    for (name, value) in [("commands", may(role)), ("keys", "~*"), ("channels", "&*")] {
        writer.bulk(name.as_bytes());
        writer.bulk(value.as_bytes());
    }
}
