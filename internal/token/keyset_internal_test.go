package token

import (
	"encoding/json"
	"testing"

	"remit/test/suite"
)

// The key set is held to the bytes of encoding/json, which wrote it first.
func TestTheKeySetKeepsItsBytes(t *testing.T) {
	t.Parallel()
	var keys []*SigningKey
	for _, algorithm := range []Algorithm{Ed25519, ES256, RS256} {
		material := must(GenerateSigningKey(algorithm))(t)
		key := must(ParseSigningKey(material))(t)
		keys = append(keys, key)
	}
	refresh := must(ParseRefreshKey(GenerateRefreshKey()))(t)
	ring := must(NewKeyring("http://issuer", keys, []*RefreshKey{refresh}))(t)
	want, err := json.Marshal(map[string]any{"keys": []jwk{keys[0].public, keys[1].public, keys[2].public}})
	if got := ring.JWKS(); string(got) != string(want) || err != nil {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
}

func must[T any](value T, err error) func(testing.TB) T { return suite.Must(value, err) }
