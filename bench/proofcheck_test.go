package bench

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"remit/internal/token"
	"remit/test/prover"
)

// BenchmarkProofCheck checks all that the text of a proof says, for a key that is known from the proof before, beside the check
// of its signature by the standard library alone.
func BenchmarkProofCheck(b *testing.B) {
	for _, algorithm := range proofAlgorithms {
		b.Run(algorithm, func(b *testing.B) {
			b.ReportAllocs()
			key := prover.New(algorithm)
			compare(b, checkingProof(b, key), checkingSignature(b, key))
		})
	}
}

func checkingProof(tb testing.TB, key *prover.Key) contender {
	tb.Helper()
	const url = "http://bench/v1/auth/verify"
	access := strings.Repeat("a", 640) // as long as an access token
	text := key.Prove(prover.Proof{Method: http.MethodGet, URL: url, Token: access})
	keys := newKeyring(tb)
	use := token.ProofUse{
		Method: http.MethodGet, URLs: []string{url}, TokenHash: token.TokenHash(access), Thumbprint: key.Thumbprint(), Now: time.Now(),
	}
	first := must(keys.VerifyProof(text, use, nil))(tb)
	return alone("check", func() error {
		_, err := keys.VerifyProof(text, use, first.Key)
		return err
	})
}

// checkingSignature hashes what a proof signs, and checks the signature.
func checkingSignature(tb testing.TB, key *prover.Key) contender {
	tb.Helper()
	message := []byte(strings.Repeat("m", 460)) // as long as header and claims of a proof
	options := map[string]crypto.SignerOpts{
		"ES256": crypto.SHA256, "ES384": crypto.SHA384, "EdDSA": crypto.Hash(0), "RS256": crypto.SHA256,
		"PS256": &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256},
	}[key.Algorithm]
	signature := must(crypto.SignMessage(key.Private, rand.Reader, message, options))(tb)
	return alone("signature", func() error {
		if !isSigned(key, message, signature) {
			return errors.New("the signature is wrong")
		}
		return nil
	})
}

func isSigned(key *prover.Key, message, signature []byte) bool {
	switch public := key.Private.Public().(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(public, message, signature)
	case *ecdsa.PublicKey:
		if key.Algorithm == "ES384" {
			digest := sha512.Sum384(message)
			return ecdsa.VerifyASN1(public, digest[:], signature)
		}
		digest := sha256.Sum256(message)
		return ecdsa.VerifyASN1(public, digest[:], signature)
	case *rsa.PublicKey:
		digest := sha256.Sum256(message)
		if key.Algorithm == "PS256" {
			return rsa.VerifyPSS(public, crypto.SHA256, digest[:], signature, nil) == nil
		}
		return rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], signature) == nil
	}
	return false
}

// alone calls a function from one goroutine.
func alone(name string, do func() error) contender {
	calls := timed(name, func(n int) ([]time.Duration, error) {
		return spread(1, n, func(int) error { return do() })
	})
	calls.alone = true
	return calls
}
