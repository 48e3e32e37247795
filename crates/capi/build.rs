//! Names the shared library as it is installed: by the version of its binary interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The number is `HEADWAY_ABI_VERSION`; the tests compare them.
    println!("cargo::rustc-link-arg-cdylib=-Wl,-soname,libheadway.so.1");
}
