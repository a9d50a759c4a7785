// Words for someone who types, from Rust without any crate: rustc suggest.rs -l micronet -L LIBDIR; suggest MODEL TEXT
use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr::null_mut;

#[repr(C)]
struct Error {
    status: c_int,
    message: [c_char; 512],
}

#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

extern "C" {
    fn mn_model_open(path: *const c_char, kernels: *const c_char, model: *mut *mut Opaque, error: *mut Error) -> c_int;
    fn mn_model_close(model: *mut Opaque);
    fn mn_text_start(model: *const Opaque, text: *mut *mut Opaque, error: *mut Error) -> c_int;
    fn mn_text_free(text: *mut Opaque);
    fn mn_text_feed(text: *mut Opaque, utf8: *const c_char, size: usize, error: *mut Error) -> c_int;
    fn mn_text_suggest(text: *mut Opaque, k: i32, words: *mut *mut Opaque, error: *mut Error) -> c_int;
    fn mn_words_count(words: *const Opaque) -> usize;
    fn mn_words_text(words: *const Opaque, place: usize, size: *mut usize) -> *const c_char;
    fn mn_words_free(words: *mut Opaque);
}

/// A thing of the engine, freed when it goes out of scope.
struct Owned(*mut Opaque, unsafe extern "C" fn(*mut Opaque));

impl Drop for Owned {
    fn drop(&mut self) {
        unsafe { (self.1)(self.0) }
    }
}

fn checked(call: impl FnOnce(*mut Error) -> c_int) -> Result<(), String> {
    let mut error = Error { status: 0, message: [0; 512] };
    match call(&mut error) {
        0 => Ok(()),
        _ => Err(unsafe { CStr::from_ptr(error.message.as_ptr()) }.to_string_lossy().into_owned()),
    }
}

fn suggest(path: &str, text: &str) -> Result<Vec<String>, String> {
    let (path, auto) = (CString::new(path).map_err(|e| e.to_string())?, CString::new("auto").unwrap());
    let mut made = null_mut();
    checked(|e| unsafe { mn_model_open(path.as_ptr(), auto.as_ptr(), &mut made, e) })?;
    let model = Owned(made, mn_model_close);
    checked(|e| unsafe { mn_text_start(model.0, &mut made, e) })?;
    let state = Owned(made, mn_text_free);
    checked(|e| unsafe { mn_text_feed(state.0, text.as_ptr().cast(), text.len(), e) })?;
    checked(|e| unsafe { mn_text_suggest(state.0, 3, &mut made, e) })?;
    let words = Owned(made, mn_words_free);
    let word = |i| unsafe { CStr::from_ptr(mn_words_text(words.0, i, null_mut())) }.to_string_lossy().into_owned();
    Ok((0..unsafe { mn_words_count(words.0) }).map(word).collect())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, text] = &arguments[..] else {
        eprintln!("usage: suggest MODEL TEXT");
        std::process::exit(2);
    };
    match suggest(path, text) {
        Ok(words) => words.iter().for_each(|word| println!("{word}")),
        Err(message) => {
            eprintln!("suggest: {message}");
            std::process::exit(1);
        }
    }
}
