package server_test

import (
	"fmt"
	"slices"

	"remit/openapi/conformance"
)

// unseen are the operations of openapi.json that this suite does not carry out.
var unseen = []string{
	"GET /metrics", // see elsewhere
}

// everyOperationWasSeen says whether every operation of openapi.json has succeeded somewhere in the suite, and tells which
// errors were never given.
func everyOperationWasSeen() bool {
	suite, err := conformance.Shared()
	if err != nil {
		fmt.Println(err)
		return false
	}
	operations, refusals := suite.Unseen()
	fmt.Printf("openapi.json: %d different exchanges judged; %d errors of operations were never given\n", suite.Judged(), len(refusals))
	for _, refusal := range refusals {
		fmt.Println("  never given:", refusal)
	}
	operations = slices.DeleteFunc(operations, func(name string) bool { return slices.Contains(unseen, name) })
	for _, operation := range operations {
		fmt.Println("openapi.json: no test carries out", operation)
	}
	return len(operations) == 0
}
