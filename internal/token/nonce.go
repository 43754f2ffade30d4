package token

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// Nonces of proofs (RFC 9449 §8) are derived: every instance makes the same one and accepts those of the others, and nothing
// is stored. A nonce is the number of its period, and the first half of an HMAC of it.
const (
	nonceSeconds  = 300 // of a period; a nonce is accepted in its own and the next
	nonceBodySize = 4
	nonceMACSize  = 16
)

var noncePurpose = []byte("remit proof nonce\x00")

// issuedNonce is the nonce of a period as text.
type issuedNonce struct {
	period uint32
	text   string
}

// ProofNonce returns the nonce that proofs are asked to have now. It keeps the last, because every answer to a proof has it.
func (k *Keyring) ProofNonce(now time.Time) string {
	key, period := k.refresh[0], noncePeriod(now)
	if last := key.lastNonce.Load(); last != nil && last.period == period {
		return last.text
	}
	text := base64.RawURLEncoding.EncodeToString(key.nonce(period))
	key.lastNonce.Store(&issuedNonce{period, text})
	return text
}

// isProofNonce reports whether a key of this keyring made the nonce, five minutes ago or up to ten. The clock of another
// instance may be a little ahead.
func (k *Keyring) isProofNonce(text string, now time.Time) bool {
	raw, err := decode(text)
	if err != nil || len(raw) != nonceBodySize+nonceMACSize {
		return false
	}
	period := binary.BigEndian.Uint32(raw)
	if latest := noncePeriod(now.Add(maxClockSkew)); period > latest || period+1 < noncePeriod(now) {
		return false
	}
	for _, key := range k.refresh {
		if hmac.Equal(raw, key.nonce(period)) {
			return true
		}
	}
	return false
}

func noncePeriod(now time.Time) uint32 { return uint32(now.Unix() / nonceSeconds) }

func (key *RefreshKey) nonce(period uint32) []byte {
	body := binary.BigEndian.AppendUint32(make([]byte, 0, 64), period)
	return key.appendMAC(noncePurpose, body, body)[:nonceBodySize+nonceMACSize]
}
