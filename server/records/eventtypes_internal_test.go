package records

import (
	"encoding/json"
	"slices"
	"testing"

	"remit/openapi"
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
	if err := json.Unmarshal(openapi.JSON().Body, &description); err != nil {
		t.Fatal(err)
	}
	if described := description.Components.Schemas.EventType.Enum; !slices.Equal(described, eventTypes) {
		t.Errorf("described are %q, known are %q", described, eventTypes)
	}
}
