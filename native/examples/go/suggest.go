// Words for someone who types, from Go: PKG_CONFIG_PATH=LIBDIR/pkgconfig go run suggest.go MODEL TEXT
package main

// #cgo pkg-config: micronet
// #include <stdlib.h>
// #include <micronet.h>
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

func suggest(path, text string) ([]string, error) {
	var failure C.mn_error
	problem := func() error { return errors.New(C.GoString(&failure.message[0])) }
	name, auto, typed := C.CString(path), C.CString("auto"), C.CString(text)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(auto))
	defer C.free(unsafe.Pointer(typed))

	var model *C.mn_model
	if C.mn_model_open(name, auto, &model, &failure) != C.MN_OK {
		return nil, problem()
	}
	defer C.mn_model_close(model)
	var state *C.mn_text
	if C.mn_text_start(model, &state, &failure) != C.MN_OK {
		return nil, problem()
	}
	defer C.mn_text_free(state)
	if C.mn_text_feed(state, typed, C.size_t(len(text)), &failure) != C.MN_OK {
		return nil, problem()
	}
	var words *C.mn_words
	if C.mn_text_suggest(state, 3, &words, &failure) != C.MN_OK {
		return nil, problem()
	}
	defer C.mn_words_free(words)
	var found []string
	for i := C.size_t(0); i < C.mn_words_count(words); i++ {
		found = append(found, C.GoString(C.mn_words_text(words, i, nil)))
	}
	return found, nil
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: suggest MODEL TEXT")
		os.Exit(2)
	}
	words, err := suggest(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "suggest:", err)
		os.Exit(1)
	}
	for _, word := range words {
		fmt.Println(word)
	}
}
