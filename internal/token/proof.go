package token

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxProofSize is the maximum length of a proof in bytes. Longer ones are rejected unread.
	MaxProofSize = 4096
	// ProofLifetime is how long after its iat a proof is accepted.
	ProofLifetime = 60 * time.Second

	proofType    = "dpop+jwt" // RFC 9449 §4.2
	maxProofSkew = 30 * time.Second
	maxProofID   = 255 // bytes

	thumbprintSize = 43 // bytes, of SHA-256 in base64url
)

// ErrNonce refuses a proof whose nonce is not one of this service's, or no longer.
var ErrNonce = errors.New("the nonce is not one that this service issued within the last minutes")

// ProofAlgorithms returns the algorithms of the proofs that are accepted (RFC 7518 §3.1, RFC 8037 §3.1).
func ProofAlgorithms() []string {
	return []string{"ES256", "ES384", "EdDSA", "RS256", "PS256", fullyEd25519}
}

// ProofUse is what a proof must have been made for.
type ProofUse struct {
	Method string
	// URLs are the spellings of the request's URL, each as ProofURL returns it. The proof must name one.
	URLs []string
	// TokenHash is TokenHash of the access token that the request presents, and Thumbprint that of the key it is bound to; both
	// are "" where no access token is presented.
	TokenHash  string
	Thumbprint string
	Now        time.Time
}

// Proof is what a valid proof proves.
type Proof struct {
	// Key is the key that signed it. VerifyProof takes it again, to read the same header only once.
	Key *ProofKey
	// Fingerprint is that of its key and its jti: a second proof with the same one is a replay.
	Fingerprint [sha256.Size]byte
}

// ProofKey is the key in the header of a proof.
type ProofKey struct {
	header     string // the whole header, as it was sent
	method     jwt.SigningMethod
	key        PublicKey
	thumbprint string
}

// Thumbprint returns the key's SHA-256 thumbprint (RFC 7638) in base64url, as cnf.jkt has it (RFC 9449 §6.1).
func (k *ProofKey) Thumbprint() string { return k.thumbprint }

// Size returns about how many bytes the key takes while it is kept: its header has it in base64, and may have anything else.
func (k *ProofKey) Size() int { return 2 * len(k.header) }

// fingerprint returns that of the key's proof with this jti.
func (k *ProofKey) fingerprint(id string) [sha256.Size]byte {
	return sha256.Sum256(append(append(make([]byte, 0, thumbprintSize+maxProofID), k.thumbprint...), id...))
}

// ProofURL returns the URL of a request in the form in which htu is compared: without query and fragment, with scheme and host
// in lower case and without the scheme's default port (RFC 9449 §4.3, RFC 3986 §6.2.3).
func ProofURL(scheme, host, path string) string {
	scheme, host = strings.ToLower(scheme), strings.ToLower(host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	if path == "" {
		path = "/"
	}
	return scheme + "://" + strings.TrimSuffix(host, ":") + path
}

// VerifyProof checks a DPoP proof by all that RFC 9449 §4.3 asks, except that it was not used before: that takes the store.
// Known is a key that an earlier proof returned, or nil. Errors: ErrMalformed, ErrKey, ErrClaims, ErrExpired, ErrNonce and
// ErrSignature, each with a reason that quotes nothing of the proof.
func (k *Keyring) VerifyProof(text string, use ProofUse, known *ProofKey) (Proof, error) {
	header, payload, signature, ok := cutJWT(text, MaxProofSize)
	if !ok {
		return Proof{}, errProofText
	}
	key := known
	if key == nil || key.header != header {
		var err error
		if key, err = parseProofKey(header); err != nil {
			return Proof{}, err
		}
	}
	if use.Thumbprint != "" && key.thumbprint != use.Thumbprint {
		return Proof{}, fmt.Errorf("%w: the access token is bound to another key", ErrKey)
	}
	claims, err := k.readProofClaims(payload, use)
	if err != nil {
		return Proof{}, err
	}
	raw, err := decode(signature)
	if err != nil {
		return Proof{}, errProofText
	}
	if key.method.Verify(text[:len(header)+1+len(payload)], raw, key.key.public) != nil {
		return Proof{}, ErrSignature
	}
	return Proof{Key: key, Fingerprint: key.fingerprint(claims.ID)}, nil
}

var errProofText = fmt.Errorf("%w: it must be one JWT of at most %d bytes", ErrMalformed, MaxProofSize)

// proofHeader is the JOSE header (RFC 9449 §4.2). Members that it does not list are ignored (RFC 7515 §4), but none that is
// critical.
type proofHeader struct {
	Type      string         `json:"typ"`
	Algorithm string         `json:"alg"`
	Key       jsontext.Value `json:"jwk"`
	Critical  jsontext.Value `json:"crit"`
}

// parseProofKey reads a proof's header: its alg must fit the key, and be none of the symmetric ones.
func parseProofKey(text string) (*ProofKey, error) {
	var header proofHeader
	raw, err := decode(text)
	if err != nil || json.Unmarshal(raw, &header) != nil {
		return nil, errProofText
	}
	switch {
	case header.Type != proofType:
		return nil, fmt.Errorf("%w: its typ must be %s", ErrMalformed, proofType)
	case header.Critical != nil:
		return nil, fmt.Errorf("%w: its header must not have crit", ErrMalformed)
	case !slices.Contains(ProofAlgorithms(), header.Algorithm):
		return nil, fmt.Errorf("%w: its alg must be one of %s", ErrMalformed, strings.Join(ProofAlgorithms(), ", "))
	case header.Key == nil:
		return nil, fmt.Errorf("%w: its header must have a jwk", ErrKey)
	}
	key, err := ParseJWK(header.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: its jwk %s", ErrKey, reason(err))
	}
	method := key.method(header.Algorithm)
	if method == nil {
		return nil, fmt.Errorf("%w: its alg is not for such a key", ErrKey)
	}
	return &ProofKey{header: strings.Clone(text), method: method, key: key, thumbprint: key.Thumbprint()}, nil
}

type proofClaims struct {
	ID        string   `json:"jti"`
	Method    string   `json:"htm"`
	URL       string   `json:"htu"`
	Issued    *float64 `json:"iat"` // seconds since 1970, perhaps with a fraction (RFC 7519 §2)
	TokenHash string   `json:"ath"`
	Nonce     *string  `json:"nonce"`
}

func (k *Keyring) readProofClaims(text string, use ProofUse) (proofClaims, error) {
	var c proofClaims
	raw, err := decode(text)
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return c, errProofText
	}
	switch {
	case c.ID == "" || len(c.ID) > maxProofID:
		return c, fmt.Errorf("%w: its jti must have 1 to %d bytes", ErrClaims, maxProofID)
	case c.Method != use.Method:
		return c, fmt.Errorf("%w: its htm must be the method of the request", ErrClaims)
	case !isProofURL(c.URL, use.URLs):
		return c, fmt.Errorf("%w: its htu must be the URL of the request, without query and fragment", ErrClaims)
	case use.TokenHash != "" && c.TokenHash != use.TokenHash:
		return c, fmt.Errorf("%w: its ath must be the hash of the access token", ErrClaims)
	case c.Issued == nil:
		return c, fmt.Errorf("%w: its iat is missing", ErrClaims)
	}
	age := float64(use.Now.UnixMilli())/1000 - *c.Issued
	switch {
	case age > ProofLifetime.Seconds():
		return c, fmt.Errorf("%w: its iat must be within the last %.0f seconds", ErrExpired, ProofLifetime.Seconds())
	case age < -maxProofSkew.Seconds():
		return c, fmt.Errorf("%w: its iat must not be ahead", ErrClaims)
	case c.Nonce != nil && !k.isProofNonce(*c.Nonce, use.Now):
		return c, ErrNonce
	}
	return c, nil
}

// TokenHash returns what ath is for an access token (RFC 9449 §4.2).
func TokenHash(accessToken string) string {
	digest := sha256.Sum256([]byte(accessToken))
	return encode(digest[:])
}

// isProofURL reports whether htu is one of the URLs. Most clients write one of them exactly.
func isProofURL(htu string, wanted []string) bool {
	if slices.Contains(wanted, htu) {
		return true
	}
	given, err := url.Parse(htu)
	if err != nil || given.Host == "" || given.User != nil || given.Opaque != "" {
		return false
	}
	return slices.Contains(wanted, ProofURL(given.Scheme, given.Host, given.EscapedPath()))
}
