package redisstore

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// notAsked are the operations that take a key or a caller, and of which no stranger can learn or change anything.
var notAsked = map[string]string{
	"CreateOrganization": "the key is that of the organization to create",
	"CreateRootSession":  "it is CreateSession",
	"ReplaceAPIKey":      "the operator asks, and the key is the new one",
	"HasVerified":        "it looks into the instance's memory",
}

func TestStrangersAskForEveryOperationThatTakesAKeyOrACaller(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, operation := range askedByKey(APIKey{}) {
		method, _, _ := strings.Cut(operation.name, " ")
		listed[method] = true
	}
	credentials := []reflect.Type{reflect.TypeFor[APIKey](), reflect.TypeFor[Caller](), reflect.TypeFor[*APIKey](), reflect.TypeFor[*Caller]()}
	store := reflect.TypeFor[*Store]()
	for i := range store.NumMethod() {
		method := store.Method(i)
		takes := slices.ContainsFunc(slices.Collect(method.Type.Ins()), func(in reflect.Type) bool { return slices.Contains(credentials, in) })
		switch {
		case takes && !listed[method.Name] && notAsked[method.Name] == "":
			t.Errorf("%s is not in asked_test.go", method.Name)
		case listed[method.Name] && !takes:
			t.Errorf("%s takes neither a key nor a caller", method.Name)
		}
		delete(listed, method.Name)
	}
	for name := range listed {
		t.Errorf("%s is no operation", name)
	}
}
