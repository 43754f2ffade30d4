-- Adds a field to those that an object is created with, unless its value is ''.
if $value ~= '' then
  fields[#fields + 1] = '$field'
  fields[#fields + 1] = $value
end
