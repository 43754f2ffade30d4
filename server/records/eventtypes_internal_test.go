package records

import (
	"encoding/json"
	"slices"
	"testing"

	"remit/openapi"
	"remit/test/suite"
)

func TestWebhooksKnowTheTypesOfTheDescription(t *testing.T) {
	t.Parallel()
	var description struct {
		Components struct {
			Schemas struct {
				EventType struct {
					Enum []string `json:"enum"`
				}
			} `json:"schemas"`
		} `json:"components"`
	}
	suite.Must(0, json.Unmarshal(openapi.JSON().Body, &description))(t)
	if described := description.Components.Schemas.EventType.Enum; !slices.Equal(described, eventTypes) {
		t.Errorf("described are %q, known are %q", described, eventTypes)
	}
}
