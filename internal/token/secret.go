package token

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"

	"github.com/google/uuid"
)

const (
	apiKeyPrefix = "rmk_"
	secretPrefix = "rms_"
	// bootstrapPrefix is the prefix of bootstrap tokens that the service generates. An operator may choose any text.
	bootstrapPrefix = "rmb_"

	randomSize    = 32                                                               // bytes of entropy in a key or secret
	apiKeySize    = 16 + randomSize                                                  // bytes: organization id, then randomness
	apiKeyDigits  = 65                                                               // base62 digits that hold 48 bytes
	secretDigits  = 43                                                               // base62 digits that hold 32 bytes
	checksumSize  = 6                                                                // base62 digits that hold 32 bits
	base62Letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" // the order of math/big
)

// Hash returns the SHA-256 of a credential's text, which is what the store keeps.
func Hash(credential string) [sha256.Size]byte { return sha256.Sum256([]byte(credential)) }

// NewAPIKey returns a new API key of the organization: rmk_, base62 of the organization id and 32 random bytes, and
// a checksum.
func NewAPIKey(organization uuid.UUID) string {
	payload := make([]byte, apiKeySize)
	copy(payload, organization[:])
	rand.Read(payload[len(organization):])
	return format(apiKeyPrefix, payload, apiKeyDigits)
}

// APIKeyOrganization returns the organization that an API key names, and ErrMalformed for anything that NewAPIKey cannot have
// returned. The store decides whether the key is valid.
func APIKeyOrganization(key string) (uuid.UUID, error) {
	payload, err := parse(apiKeyPrefix, key, apiKeySize, apiKeyDigits)
	if err != nil {
		return uuid.Nil, err
	}
	return uuid.UUID(payload[:16]), nil
}

// LooksLikeAPIKey says whether a text begins as API keys do, valid or not.
func LooksLikeAPIKey(text []byte) bool { return bytes.HasPrefix(text, []byte(apiKeyPrefix)) }

// Hint returns the last 4 characters of an API key, by which its owner recognizes it. They are of the checksum, so they
// reveal nothing that helps to guess the key.
func Hint(apiKey string) string { return apiKey[len(apiKey)-4:] }

// NewAgentSecret returns a new agent secret: rms_, base62 of 32 random bytes, and a checksum.
func NewAgentSecret() string { return newSecret(secretPrefix) }

// NewBootstrapToken returns a new bootstrap token: rmb_, base62 of 32 random bytes, and a checksum.
func NewBootstrapToken() string { return newSecret(bootstrapPrefix) }

func newSecret(prefix string) string {
	payload := make([]byte, randomSize)
	rand.Read(payload)
	return format(prefix, payload, secretDigits)
}

// CheckAgentSecret returns ErrMalformed for anything that NewAgentSecret cannot have returned.
func CheckAgentSecret(secret string) error {
	_, err := parse(secretPrefix, secret, randomSize, secretDigits)
	return err
}

// The checksum covers the prefix too, so that a secret with another prefix is rejected.
func format(prefix string, payload []byte, digits int) string {
	body := prefix + base62(new(big.Int).SetBytes(payload), digits)
	return body + checksum(body)
}

func parse(prefix, credential string, size, digits int) ([]byte, error) {
	if len(credential) != len(prefix)+digits+checksumSize || !strings.HasPrefix(credential, prefix) {
		return nil, ErrMalformed
	}
	body, sum := credential[:len(prefix)+digits], credential[len(prefix)+digits:]
	if checksum(body) != sum {
		return nil, ErrMalformed
	}
	text := body[len(prefix):]
	if strings.Trim(text, base62Letters) != "" {
		return nil, ErrMalformed // big.Int would accept a sign
	}
	number, ok := new(big.Int).SetString(text, 62)
	if !ok || number.BitLen() > size*8 {
		return nil, ErrMalformed
	}
	return number.FillBytes(make([]byte, size)), nil
}

func base62(number *big.Int, digits int) string {
	text := number.Text(62)
	return strings.Repeat("0", digits-len(text)) + text
}

func checksum(body string) string {
	return base62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), checksumSize)
}
