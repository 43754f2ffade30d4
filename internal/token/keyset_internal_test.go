package token

import (
	"encoding/json"
	"testing"
)

// The key set is held to the bytes of encoding/json, which wrote it first.
func TestTheKeySetKeepsItsBytes(t *testing.T) {
	t.Parallel()
	var keys []*SigningKey
	for _, algorithm := range []Algorithm{Ed25519, ES256, RS256} {
		material, err := GenerateSigningKey(algorithm)
		if err != nil {
			t.Fatal(err)
		}
		key, err := ParseSigningKey(material)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	refresh, err := ParseRefreshKey(GenerateRefreshKey())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := NewKeyring("http://issuer", keys, []*RefreshKey{refresh})
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(map[string]any{"keys": []jwk{keys[0].public, keys[1].public, keys[2].public}})
	if got := ring.JWKS(); string(got) != string(want) || err != nil {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
}
