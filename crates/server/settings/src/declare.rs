//! The macro that makes everything of the declarations in [`table`](crate): the types of what was said, the
//! server's settings, and the lists that a command line, a file, a comparison and documents are made of.

/// Declares settings. In turn:
///
/// * `config`: fields of [`Config`](crate::config::Config) that no single setting decides, with their defaults;
/// * `flags`: each a field of [`Flags`](crate::Flags), its form, its help, and fields of [`About`](crate::About).
///   `=> fixed NAME: TYPE` also makes it a field of `Config`, and `=> live NAME: TYPE` one of [`Live`](crate::Live)
///   besides, which SIGHUP changes;
/// * `options`: the same for the options of `-o`, which are fields of [`Options`](crate::Options).
macro_rules! settings {
    (
        config { $( $(#[doc = $doc:literal])+ $own:ident: $own_type:ty = $own_default:expr; )* }
        flags { $(
            $flag:ident: $form:ty $(=> $when:ident $field:ident: $type:ty)?, $help:literal { $($key:ident: $value:expr),* $(,)? }
        )* }
        options { $(
            $option:ident: $oform:ty $(=> $owhen:ident $ofield:ident: $otype:ty)?, $ohelp:literal { $($okey:ident: $ovalue:expr),* $(,)? }
        )* }
    ) => {
        /// The flags as typed, or the same in a file. Nothing is filled in, and only the form of values is checked.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Flags { $( #[doc = $help] pub $flag: <$form as Form>::Said, )* }

        /// The options of `-o`, in the same way.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Options { $( #[doc = $ohelp] pub $option: <$oform as Form>::Said, )* }

        /// What is known of each flag.
        #[expect(non_upper_case_globals, reason = "these are the names of the fields")]
        pub mod flag {
            use super::*;
            $( #[doc = $help] pub const $flag: About = About { help: $help, $($key: $value,)* ..About::NOTHING }; )*
        }

        /// What is known of each option of `-o`.
        #[expect(non_upper_case_globals, reason = "these are the names of the fields")]
        pub mod option {
            use super::*;
            $( #[doc = $ohelp] pub const $option: About = About {
                help: $ohelp, name: stringify!($option), is_option: true, $($okey: $ovalue,)* ..About::NOTHING
            }; )*
        }

        /// Every flag, in the order of the help.
        pub static FLAGS: &[Setting<Flags>] = &[ $( Setting {
            about: &flag::$flag,
            kind: <$form as Form>::KIND,
            reload: reload!(flag::$flag $(, $when)?),
            read: |flags, word| <$form as Form>::read(&mut flags.$flag, word, &flag::$flag),
            show: |flags| <$form as Form>::show(&flags.$flag),
        }, )* ];

        /// Every option of `-o` that has an effect, in the order of the help.
        pub static OPTIONS: &[Setting<Options>] = &[ $( Setting {
            about: &option::$option,
            kind: <$oform as Form>::KIND,
            reload: reload!(option::$option $(, $owhen)?),
            read: |options, word| <$oform as Form>::read(&mut options.$option, word, &option::$option),
            show: |options| <$oform as Form>::show(&options.$option),
        }, )* ];

        impl Flags {
            /// These flags, and the file's value for each that is not said.
            pub fn over(self, file: Self) -> Self {
                Self { $( $flag: <$form as Form>::over(self.$flag, file.$flag), )* }
            }

            /// The same without values that are empty. An empty value is how a flag unsets a setting of the file:
            /// `--metrics=`.
            pub fn without_empty(self) -> Self {
                Self { $( $flag: <$form as Form>::without_empty(self.$flag), )* }
            }
        }

        /// Errors: a number is out of its bounds.
        pub fn check_bounds(flags: &Flags, options: &Options) -> Result<(), String> {
            $( flag::$flag.check(<$form as Form>::number(&flags.$flag))?; )*
            $( option::$option.check(<$oform as Form>::number(&options.$option))?; )*
            Ok(())
        }

        /// Everything a server needs to know besides its engine. The settings that decide one field each are declared
        /// with it, in `settings/table.rs`.
        #[derive(Clone, Debug)]
        pub struct Config {
            $( $(#[doc = $doc])+ pub $own: $own_type, )*
            $( $( #[doc = concat!("Of [`Flags::", stringify!($flag), "`].")] pub $field: $type, )? )*
            $( $( #[doc = concat!("Of [`Options::", stringify!($option), "`].")] pub $ofield: $otype, )? )*
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $( $own: $own_default, )*
                    $( $( $field: default_of::<$form, $type>(&flag::$flag), )? )*
                    $( $( $ofield: default_of::<$oform, $otype>(&option::$option), )? )*
                }
            }
        }

        impl Config {
            /// Takes the settings that decide one field each. Errors: a value cannot be.
            pub fn take(&mut self, flags: &Flags, options: &Options) -> Result<(), String> {
                check_bounds(flags, options)?;
                $( $( self.$field = value_of::<$form, $type>(&flags.$flag, &flag::$flag)?; )? )*
                $( $( self.$ofield = value_of::<$oform, $otype>(&options.$option, &option::$option)?; )? )*
                Ok(())
            }
        }

        live! { [] $( $( $when $field: $type; )? )* $( $( $owhen $ofield: $otype; )? )* }
    };
}

/// How a change of a setting is applied.
macro_rules! reload {
    ($about:expr, live) => {
        Reload::Live
    };
    ($about:expr $(, fixed)?) => {
        $about.reload
    };
}

/// Makes the type of the settings that are `live`, out of a list of all: takes them one by one to the front.
macro_rules! live {
    ([$($field:ident: $type:ty;)*]) => {
        /// The settings of a running server that can change, all of one moment. `Config` has those of the start.
        #[derive(Clone, Debug)]
        pub struct Live { $( #[doc = concat!("See [`Config::", stringify!($field), "`].")] pub $field: $type, )* }

        impl From<&Config> for Live {
            fn from(config: &Config) -> Self {
                Self { $( $field: config.$field.clone(), )* }
            }
        }
    };
    ([$($done:tt)*] live $field:ident: $type:ty; $($rest:tt)*) => {
        live! { [$($done)* $field: $type;] $($rest)* }
    };
    ([$($done:tt)*] fixed $field:ident: $type:ty; $($rest:tt)*) => {
        live! { [$($done)*] $($rest)* }
    };
}
