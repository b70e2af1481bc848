//! Compiles the library, one `cc::Build` per instruction set.
//!
//! The lists of files, the flags and the definitions are those of upstream's CMake files for a
//! release build; which kernels run is decided at run time by `shuffle.c`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{fail, symbols, var};

const LIBRARY: &[&str] = &[
    "blosc/b2nd.c",
    "blosc/b2nd_utils.c",
    "blosc/bitshuffle-generic.c",
    "blosc/blosc2-stdio.c",
    "blosc/blosc2.c",
    "blosc/delta.c",
    "blosc/directories.c",
    "blosc/frame.c",
    "blosc/schunk.c",
    "blosc/sframe.c",
    "blosc/shuffle-generic.c",
    "blosc/stune.c",
    "blosc/timestamp.c",
    "blosc/trunc-prec.c",
    "plugins/codecs/codecs-registry.c",
    "plugins/codecs/ndlz/ndlz.c",
    "plugins/codecs/ndlz/ndlz4x4.c",
    "plugins/codecs/ndlz/ndlz8x8.c",
    "plugins/codecs/ndlz/xxhash.c",
    "plugins/filters/filters-registry.c",
    "plugins/filters/int_trunc/int_trunc.c",
    "plugins/filters/ndcell/ndcell.c",
    "plugins/filters/ndmean/ndmean.c",
    "plugins/tuners/tuners-registry.c",
];

/// Files that use vector instructions where the target has them in its baseline.
const COPYING: &[&str] = &["blosc/blosclz.c", "blosc/fastcopy.c"];

const BYTEDELTA: &[&str] = &["plugins/filters/bytedelta/bytedelta.c"];

/// Kernels for one instruction set: the files, their flags, and the definition by which
/// `shuffle.c` knows that they are there.
struct Kernels {
    files: &'static [&'static str],
    flags: &'static [&'static str],
    define: &'static str,
}

/// Compiles the sources under `source` into a static library.
pub(crate) fn compile(source: &Path, hardened: bool) {
    let compiler = cc::Build::new().get_compiler();
    let msvc = compiler.is_like_msvc();
    let x86 = matches!(var("CARGO_CFG_TARGET_ARCH").as_str(), "x86" | "x86_64");

    let kernels = kernels(&compiler);
    let mut objects = Vec::new();
    for set in &kernels {
        objects.extend(objects_of(source, set.files, hardened, set.flags, &[]));
    }
    let defines: Vec<&str> = kernels.iter().map(|set| set.define).collect();
    objects.extend(objects_of(source, &["blosc/shuffle.c"], hardened, &[], &defines));

    let sse2: &[&str] = match (x86, msvc) {
        (true, false) => &["-msse2"],
        _ => &[],
    };
    objects.extend(objects_of(source, COPYING, hardened, sse2, &[]));
    match (x86, msvc) {
        (true, false) => {
            objects.extend(objects_of(source, BYTEDELTA, hardened, &["-mssse3"], &["HAVE_SSSE3"]));
        }
        _ => objects.extend(objects_of(source, BYTEDELTA, hardened, &[], &[])),
    }
    // Sums of what files say may overflow here: then they wrap, and are refused afterwards.
    let wrap: &[&str] = if hardened && !msvc { &["-fwrapv"] } else { &[] };
    objects.extend(objects_of(source, LIBRARY, hardened, wrap, &[]));
    if cfg!(feature = "zfp") {
        let files = &["plugins/codecs/zfp/blosc2-zfp.c"];
        objects.extend(objects_of(source, files, hardened, &[], &[]));
    }
    if var("CARGO_CFG_TARGET_OS") == "windows" {
        objects.extend(objects_of(source, &["blosc/win32/threading.c"], hardened, &[], &[]));
    }
    if hardened {
        objects.extend(objects_of(&our_c(""), &["environment.c"], false, &[], &[]));
        let mut files = vec!["context.c"];
        if cfg!(feature = "dynamic-plugins") {
            files.push("plugins.c");
        }
        for file in files {
            // An absolute path, so that it is found beside the headers of `source`.
            let file = our_c(file).display().to_string();
            objects.extend(objects_of(source, &[&file], hardened, &[], &[]));
        }
    }
    cc::Build::new().objects(objects).compile("cblosc2");
}

/// The kernels that this target and compiler can build.
fn kernels(compiler: &cc::Tool) -> Vec<Kernels> {
    let msvc = compiler.is_like_msvc();
    let mut sets = Vec::new();
    match var("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86" | "x86_64" => {
            sets.push(Kernels {
                files: &["blosc/shuffle-sse2.c", "blosc/bitshuffle-sse2.c"],
                flags: if msvc { &[] } else { &["-msse2"] },
                define: "SHUFFLE_SSE2_ENABLED",
            });
            sets.push(Kernels {
                files: &["blosc/shuffle-avx2.c", "blosc/bitshuffle-avx2.c"],
                flags: if msvc { &["/arch:AVX2"] } else { &["-mavx2"] },
                define: "SHUFFLE_AVX2_ENABLED",
            });
            if dispatches_avx512(compiler) {
                sets.push(Kernels {
                    files: &["blosc/bitshuffle-avx512.c"],
                    flags: if msvc { &["/arch:AVX512"] } else { &["-mavx512f", "-mavx512bw"] },
                    define: "SHUFFLE_AVX512_ENABLED",
                });
            }
        }
        // The NEON bitshuffle is no faster than the generic one, and upstream leaves it out.
        "aarch64" => sets.push(Kernels {
            files: &["blosc/shuffle-neon.c"],
            flags: if msvc { &[] } else { &["-flax-vector-conversions"] },
            define: "SHUFFLE_NEON_ENABLED",
        }),
        "arm" if target_is_armv7() => sets.push(Kernels {
            files: &["blosc/shuffle-neon.c"],
            flags: &["-mfpu=neon", "-flax-vector-conversions"],
            define: "SHUFFLE_NEON_ENABLED",
        }),
        // There is no run-time dispatch here. POWER8 is the least that little-endian systems ask for.
        "powerpc64" if var("CARGO_CFG_TARGET_ENDIAN") == "little" => sets.push(Kernels {
            files: &["blosc/shuffle-altivec.c", "blosc/bitshuffle-altivec.c"],
            flags: &["-DNO_WARN_X86_INTRINSICS", "-mcpu=power8"],
            define: "SHUFFLE_ALTIVEC_ENABLED",
        }),
        _ => {}
    }
    sets
}

/// Whether the compiler is new enough for AVX-512 behind run-time dispatch. The limits are
/// upstream's.
fn dispatches_avx512(compiler: &cc::Tool) -> bool {
    if compiler.is_like_msvc() {
        return true;
    }
    let output = match Command::new(compiler.path()).arg("-dumpfullversion").output() {
        Ok(output) if output.status.success() => output.stdout,
        _ => match Command::new(compiler.path()).arg("-dumpversion").output() {
            Ok(output) => output.stdout,
            Err(_) => return false,
        },
    };
    let text = String::from_utf8_lossy(&output);
    let mut parts = text.trim().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    version >= if compiler.is_like_clang() { (13, 0) } else { (11, 4) }
}

/// Whether NEON can be compiled for; whether the machine has it is asked at run time.
fn target_is_armv7() -> bool {
    let target = var("TARGET");
    target.starts_with("armv7") || target.starts_with("thumbv7neon")
}

fn objects_of(
    source: &Path,
    files: &[&str],
    hardened: bool,
    flags: &[&str],
    defines: &[&str],
) -> Vec<PathBuf> {
    let mut build = cc::Build::new();
    build.files(files.iter().map(|file| source.join(file)));
    for flag in flags {
        build.flag(flag);
    }
    for define in defines {
        build.define(define, None);
    }
    for dir in ["include", "blosc", "plugins/codecs/zfp"] {
        build.include(source.join(dir));
    }

    build.opt_level(3).warnings(false).define("NDEBUG", None);
    build.define("BUILD_STATIC", None).define("HAVE_PLUGINS", None);
    if hardened {
        build.define("getenv", "blosc2_sys_getenv");
        if cfg!(feature = "dynamic-plugins") {
            build.define("BLOSC2_SYS_DYNAMIC_PLUGINS", None);
        }
    }

    // Functions for upstream's tests only (`cargo xtask upstream`), which inject faults.
    if env::var_os("BLOSC2_SYS_TESTING").is_some() {
        build.define("BLOSC_TESTING", None);
    }

    let compiler = build.get_compiler();
    build.define(symbols::INTERNAL, None);
    build.flag(if compiler.is_like_msvc() { "/FI" } else { "-include" });
    build.flag(symbols::header());
    if compiler.is_like_msvc() {
        build.define("_CRT_SECURE_NO_WARNINGS", None);
    } else {
        build.std("gnu99").flag("-fvisibility=hidden");
        if compiler.is_like_clang() {
            build.define("_XOPEN_SOURCE", "600");
        }
    }

    include_codec(&mut build, "LZ4", "lz4-sys");
    if cfg!(feature = "zstd") {
        build.define("HAVE_ZSTD", None);
        include_codec(&mut build, "ZSTD", "zstd-sys");
    }
    if cfg!(feature = "zlib-ng") {
        build.define("HAVE_ZLIB", None).define("HAVE_ZLIB_NG", None);
        include_codec(&mut build, "Z_NG", "libz-ng-sys");
    } else if cfg!(feature = "zlib") {
        build.define("HAVE_ZLIB", None);
        build.include(our_c("zlib"));
        include_codec(&mut build, "LIBDEFLATE", "libdeflate-sys");
    }
    if cfg!(feature = "zfp") {
        build.define("HAVE_ZFP", None);
        build.include(our_c("zfp"));
    }
    build.compile_intermediates()
}

/// C code and headers of ours.
fn our_c(folder: &str) -> PathBuf {
    PathBuf::from(var("CARGO_MANIFEST_DIR")).join("build/c").join(folder)
}

/// Adds the headers of a codec, whose crate says where they are.
fn include_codec(build: &mut cc::Build, links: &str, krate: &str) {
    let name = format!("DEP_{links}_INCLUDE");
    let Some(dirs) = env::var_os(&name) else {
        fail(&format!("{krate} does not say where its headers are ({name} is not set)"));
    };
    build.includes(env::split_paths(&dirs));
}
