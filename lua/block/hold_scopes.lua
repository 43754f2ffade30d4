-- Refuses scopes, separated by single spaces, unless all of them are held. The reply names the first that is not.
-- Takes scopes.
for scope in string.gmatch(scopes, '%S+') do
  --@block hold_scope held=$held
end
