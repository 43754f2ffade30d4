package access

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// mostKeptProofKey is how many bytes a key may take that a token in the cache keeps, as token.ProofKey.Size counts them: of P-256, P-384,
// Ed25519 and RSA up to 3072 bits. Longer ones, which could take several times what the tokens do, are read again with each proof.
const mostKeptProofKey = 2 << 10

// presentedToken is an access token as a request presents it.
type presentedToken struct {
	Text   []byte
	Proven bool // under the scheme DPoP, with a proof (RFC 9449 §7.1)
}

// AccessToken returns the token of an Authorization header with the scheme Bearer or DPoP, in any case (RFC 9110 §11.1).
func AccessToken(ctx *fasthttp.RequestCtx) (presentedToken, bool) {
	scheme, given, found := bytes.Cut(ctx.Request.Header.PeekCanonical(web.CanonicalAuthorization), []byte(" "))
	if found && bytes.EqualFold(scheme, []byte("Bearer")) {
		return presentedToken{given, false}, true
	}
	if found && bytes.EqualFold(scheme, []byte("DPoP")) {
		web.InfoOf(ctx).Proven = true
		return presentedToken{given, true}, true
	}
	return presentedToken{}, false
}

// checkScheme refuses a token that is bound to a key under the scheme Bearer, and any other under the scheme DPoP (RFC 9449 §7.2).
func (p presentedToken) checkScheme(access *CachedToken) error {
	bound := access.Thumbprint != ""
	switch {
	case bound && !p.Proven:
		return ErrBoundToken
	case !bound && p.Proven:
		return ErrUnboundToken
	}
	return nil
}

// proofOf returns the proof that comes with a bound access token. It is refused without asking the store.
func (g *Guard) proofOf(ctx *fasthttp.RequestCtx, access *CachedToken) (redisstore.Proof, error) {
	switch web.InfoOf(ctx).Proofs {
	case 0:
		return redisstore.Proof{}, &ProofError{401, errNoProof}
	case 1:
	default:
		return redisstore.Proof{}, web.Invalid("", errManyProofs.Error())
	}
	of := access.Proofs
	known := of.Key.Load()
	proof, err := g.verifyProof(ctx, token.ProofUse{TokenHash: of.tokenHash, Thumbprint: access.Thumbprint}, known)
	if err != nil {
		return redisstore.Proof{}, AsProofError(401, err)
	}
	if proof.Key != known && proof.Key.Size() <= mostKeptProofKey {
		of.Key.Store(proof.Key)
	}
	return redisstore.Proof{Fingerprint: proof.Fingerprint}, nil
}

// grantProof returns the proof of the key to which a token endpoint is to bind what it issues, nil without one (RFC 9449 §5).
func (g *Guard) grantProof(ctx *fasthttp.RequestCtx) (*redisstore.Proof, error) {
	switch web.InfoOf(ctx).Proofs {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, &ProofError{400, errManyProofs}
	}
	proof, err := g.verifyProof(ctx, token.ProofUse{}, nil)
	if err != nil {
		return nil, AsProofError(400, err)
	}
	key, err := base64.RawURLEncoding.DecodeString(proof.Key.Thumbprint())
	if err != nil {
		return nil, err // never: VerifyProof wrote it
	}
	return &redisstore.Proof{Key: [32]byte(key), Fingerprint: proof.Fingerprint}, nil
}

// UseProof uses up a proof of the token's key, so that no instance takes it again; nil is none.
func (g *Guard) UseProof(ctx *fasthttp.RequestCtx, access *CachedToken, proof *redisstore.Proof) error {
	if proof == nil {
		return nil
	}
	return g.Store.UseProof(web.ReadContext(ctx), *access.Caller.Token, *proof)
}

// verifyProof checks the only proof of a request, which must be for this request.
func (g *Guard) verifyProof(ctx *fasthttp.RequestCtx, use token.ProofUse, known *token.ProofKey) (token.Proof, error) {
	v := g.Tokens.Load()
	if v == nil {
		return token.Proof{}, ErrNoKeyring
	}
	if err := g.aimProof(ctx, v, &use); err != nil {
		return token.Proof{}, err
	}
	return v.Keys.VerifyProof(string(ctx.Request.Header.PeekCanonical(web.CanonicalProof)), use, known)
}

// ProofError refuses a proof: with 400 at the token endpoints (RFC 9449 §5), and with 401 elsewhere (§7.1).
type ProofError struct {
	Status int
	Cause  error
}

func (e *ProofError) Error() string { return "the DPoP proof is refused: " + proofReason(e.Cause) }

func (e *ProofError) Unwrap() error { return e.Cause }

func (e *ProofError) Problem() web.Problem {
	if errors.Is(e.Cause, token.ErrNonce) {
		return web.NewProblem(e.Status, "use_dpop_nonce", e.Error())
	}
	return web.NewProblem(e.Status, "invalid_dpop_proof", e.Error())
}

// proofReason drops the name of the kind of error before the reason.
func proofReason(err error) string {
	for _, kind := range []error{token.ErrMalformed, token.ErrKey, token.ErrClaims, token.ErrExpired} {
		if errors.Is(err, kind) {
			return strings.TrimPrefix(err.Error(), kind.Error()+": ")
		}
	}
	if errors.Is(err, token.ErrSignature) {
		return "its signature is wrong"
	}
	return err.Error()
}

// AsProofError returns the refusal of a proof, by package token or the store, with the status of the endpoint. It leaves any other
// error as it is.
func AsProofError(status int, err error) error {
	if err == nil {
		return nil
	}
	for _, fault := range []error{
		token.ErrMalformed, token.ErrKey, token.ErrClaims, token.ErrExpired, token.ErrSignature, token.ErrNonce, redisstore.ErrProofUsed,
	} {
		if errors.Is(err, fault) {
			return &ProofError{status, err}
		}
	}
	return err
}

// OfferNonce tells the client the nonce of now (RFC 9449 §8.2).
func (g *Guard) OfferNonce(ctx *fasthttp.RequestCtx) {
	if v := g.Tokens.Load(); v != nil {
		ctx.Response.Header.SetCanonical(web.CanonicalNonce, []byte(v.Keys.ProofNonce(time.Now())))
	}
}
