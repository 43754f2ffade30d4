package access

import (
	"testing"

	"github.com/go-json-experiment/json"
	"remit/test/suite"
)

func TestATokenPairIsWrittenAsTheEncoderWouldWriteIt(t *testing.T) {
	t.Parallel()
	for _, pair := range []TokenPair{{}, {AccessToken: "eyJ-_09.a.b", RefreshToken: "rmr_A-_z09", TokenType: "bearer", ExpiresIn: 3600}} {
		want := suite.Must(json.Marshal(pair))(t)
		if got := pair.Append(nil); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
