# shellcheck shell=bash
# shellcheck disable=SC2034 # used by the scripts that source this
# To be sourced from the top of the repository. The SDK's modules lie inside the service's; ./... alone leaves them out.
#   modules    the directories of all modules: . client client/mcp money
#   packages   patterns of the packages of all of them, for go commands that run at the top
modules=() packages=()
while read -r file; do
  module=$(dirname "$file")
  modules+=("$module")
  if [ "$module" = . ]; then
    packages+=(./...)
  else
    packages+=("$(cd "$module" && go list -m)/...")
  fi
done < <(find . -name node_modules -prune -o -name go.mod -print | sort)
