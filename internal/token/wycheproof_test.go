package token

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// TestSignaturesAreJudgedAsWycheproofDoes runs the Ed25519 vectors of Project Wycheproof through the method that access
// tokens are verified with.
func TestSignaturesAreJudgedAsWycheproofDoes(t *testing.T) {
	t.Parallel()
	var vectors struct {
		NumberOfTests int
		TestGroups    []struct {
			PublicKey struct{ PK string }
			Tests     []struct {
				TcID             int
				Comment          string
				Msg, Sig, Result string
			}
		}
	}
	must(0, json.Unmarshal(must(os.ReadFile("testdata/wycheproof/ed25519_test.json"))(t), &vectors))(t)
	key := must(ParseSigningKey(must(GenerateSigningKey(Ed25519))(t)))(t)
	judged := map[bool]int{} // vectors, by whether they are valid
	for _, group := range vectors.TestGroups {
		public := ed25519.PublicKey(unhex(t, group.PublicKey.PK))
		for _, vector := range group.Tests {
			valid := vector.Result == "valid"
			judged[valid]++
			if err := key.method.Verify(string(unhex(t, vector.Msg)), unhex(t, vector.Sig), public); (err == nil) != valid {
				t.Errorf("vector %d (%s) is %s, and verifying says %v", vector.TcID, vector.Comment, vector.Result, err)
			}
		}
	}
	if judged[true]+judged[false] != vectors.NumberOfTests || len(judged) != 2 {
		t.Errorf("of %d vectors %v were judged", vectors.NumberOfTests, judged)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	return must(hex.DecodeString(text))(t)
}
