package token

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/hex"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// The algorithms that fit each kind of key. There is none for a secret, so that no public key is ever taken for one.
var (
	rsaMethods = []jwt.SigningMethod{
		jwt.SigningMethodRS256, jwt.SigningMethodRS384, jwt.SigningMethodRS512,
		jwt.SigningMethodPS256, jwt.SigningMethodPS384, jwt.SigningMethodPS512,
	}
	p256Methods    = []jwt.SigningMethod{jwt.SigningMethodES256}
	p384Methods    = []jwt.SigningMethod{jwt.SigningMethodES384}
	ed25519Methods = []jwt.SigningMethod{jwt.SigningMethodEdDSA}
)

// AssertionAlgorithms returns the algorithms of the assertions that are accepted (RFC 7518 §3.1, RFC 8037 §3.1).
func AssertionAlgorithms() []string {
	var names []string
	for _, methods := range [][]jwt.SigningMethod{ed25519Methods, p256Methods, p384Methods, rsaMethods} {
		for _, method := range methods {
			names = append(names, method.Alg())
		}
	}
	return append(names, fullyEd25519)
}

// fullyEd25519 is the newer name of EdDSA with Ed25519 (RFC 9864 §2.2), which some libraries write by themselves.
const fullyEd25519 = "Ed25519"

// algorithmOf returns the one name that an algorithm has here.
func algorithmOf(name string) string {
	if name == fullyEd25519 {
		return jwt.SigningMethodEdDSA.Alg()
	}
	return name
}

// method returns the method by which the key may have signed under this algorithm, or nil.
func (k PublicKey) method(algorithm string) jwt.SigningMethod {
	algorithm = algorithmOf(algorithm)
	if k.text.Alg != "" && algorithmOf(k.text.Alg) != algorithm {
		return nil
	}
	methods := k.methods()
	at := slices.IndexFunc(methods, func(m jwt.SigningMethod) bool { return m.Alg() == algorithm })
	if at < 0 {
		return nil
	}
	return methods[at]
}

func (k PublicKey) methods() []jwt.SigningMethod {
	switch public := k.public.(type) {
	case *rsa.PublicKey:
		return rsaMethods
	case ed25519.PublicKey:
		return ed25519Methods
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P384() {
			return p384Methods
		}
		return p256Methods
	}
	return nil
}

// smallOrder has the points of edwards25519 whose order divides 8, and their other spellings, without the sign. Under such a
// key a signature that anyone can make is right for many messages, or for all.
var smallOrder = []string{
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000000",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}

func hasSmallOrder(x []byte) bool {
	y := slices.Clone(x)
	y[len(y)-1] &= 0x7f
	return slices.Contains(smallOrder, hex.EncodeToString(y))
}
