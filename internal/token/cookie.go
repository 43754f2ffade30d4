package token

import (
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"strings"
)

// cookiePurpose keeps the keys of cookies apart from whatever else is derived from a refresh key.
const cookiePurpose = "remit console cookie"

// SealCookie returns the content of a cookie, encrypted with AES-256-GCM and bound to the cookie's name. Its key is derived
// (HKDF-SHA256, RFC 5869) from the keyring's first refresh key and used for nothing else, so every instance opens it, and a
// retired refresh key ends the cookies that were sealed under it.
func (k *Keyring) SealCookie(name string, content []byte) string {
	key := k.refresh[0]
	sealed := key.cookieAEAD().Seal(key.id[:], nil, content, []byte(name))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// OpenCookie returns the content that SealCookie sealed for a cookie of this name. Otherwise it returns ErrMalformed,
// ErrUnknownKey or ErrSignature.
func (k *Keyring) OpenCookie(name, text string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) < refreshKeyIDSize || strings.ContainsAny(text, "\r\n") { // which the decoder skips
		return nil, fmt.Errorf("%w: cookie", ErrMalformed)
	}
	key := k.refreshKey([refreshKeyIDSize]byte(raw))
	if key == nil {
		return nil, ErrUnknownKey
	}
	content, err := key.cookieAEAD().Open(nil, nil, raw[refreshKeyIDSize:], []byte(name))
	if err != nil {
		return nil, ErrSignature
	}
	return content, nil
}

func (key *RefreshKey) cookieAEAD() cipher.AEAD {
	return derivedAEAD(key.secret[:], nil, cookiePurpose)
}
