package keys

import (
	"fmt"
	"os"

	"remit/internal/token"
)

// Flags name the files that hold keys. Keys without a file are stored in Redis.
type Flags struct {
	SigningKey       []string `help:"PKCS#8 PEM file with a key that signs access tokens. Repeatable, comma-separated in the environment: the first key signs, all of them verify." type:"existingfile"`
	TokenKey         []string `help:"File with a key that derives refresh tokens: base64 of 32 random bytes. Repeatable, comma-separated in the environment: the first key derives, all of them verify." type:"existingfile"`
	KeyEncryptionKey string   `help:"File with the key that encrypts the keys stored in Redis: base64 of 32 random bytes." type:"existingfile"`
}

// fileKeys are the keys that files hold.
type fileKeys struct {
	signing    []*token.SigningKey
	refresh    []*token.RefreshKey
	encryption *token.KeyEncryptionKey // nil stores keys unencrypted
}

func (f Flags) read() (*fileKeys, error) {
	signing, err := readKeys(f.SigningKey, token.ParseSigningKey)
	if err != nil {
		return nil, err
	}
	refresh, err := readKeys(f.TokenKey, token.ParseRefreshKey)
	if err != nil {
		return nil, err
	}
	encryption, err := readEncryptionKey(f.KeyEncryptionKey)
	return &fileKeys{signing, refresh, encryption}, err
}

// readEncryptionKey returns nil without a file.
func readEncryptionKey(file string) (*token.KeyEncryptionKey, error) {
	if file == "" {
		return nil, nil
	}
	keys, err := readKeys([]string{file}, token.ParseKeyEncryptionKey)
	if err != nil {
		return nil, err
	}
	return keys[0], nil
}

func readKeys[K any](files []string, parse func([]byte) (K, error)) ([]K, error) {
	var keys []K
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a key: %w", err)
		}
		key, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
