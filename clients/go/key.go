package nuthatch

import (
	"encoding/base64"
	"fmt"
)

const (
	// KeyMax is the longest key, in bytes.
	KeyMax = 250
	// BinaryKeyMax is the longest key with white space or control characters: it travels in base64, which has 250 bytes at most.
	BinaryKeyMax = KeyMax / 4 * 3
)

// isBinary says whether a line of the protocol cannot carry the key as it is.
func isBinary(key string) bool {
	for i := 0; i < len(key); i++ {
		if key[i] <= ' ' || key[i] == 0x7f {
			return true
		}
	}
	return false
}

func checkKey(key string) error {
	limit := KeyMax
	if isBinary(key) {
		limit = BinaryKeyMax
	}
	if len(key) == 0 || len(key) > limit {
		return failure(ErrKey, fmt.Sprintf("%d bytes, where 1 to %d are allowed", len(key), limit))
	}
	return nil
}

// appendKey adds a key to a line. isEncoded: the line has to say that it is in base64.
func appendKey(out []byte, key string) (line []byte, isEncoded bool) {
	if !isBinary(key) {
		return append(out, key...), false
	}
	return base64.StdEncoding.AppendEncode(out, []byte(key)), true
}
