package access

import (
	"testing"

	"github.com/go-json-experiment/json"
)

func TestATokenPairIsWrittenAsTheEncoderWouldWriteIt(t *testing.T) {
	t.Parallel()
	for _, pair := range []TokenPair{{}, {AccessToken: "eyJ-_09.a.b", RefreshToken: "rmr_A-_z09", TokenType: "bearer", ExpiresIn: 3600}} {
		want, err := json.Marshal(pair)
		if err != nil {
			t.Fatal(err)
		}
		if got := pair.Append(nil); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
