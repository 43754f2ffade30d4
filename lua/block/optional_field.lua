-- Adds a field to a new object's fields, unless its value is ''.
-- Takes fields.
if $value ~= '' then
  fields[#fields + 1] = '$field'
  fields[#fields + 1] = $value
end
