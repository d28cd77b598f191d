# frozen_string_literal: true

require_relative "helper"

# What Fiddle is told about the library is what the library's header says.
class HeaderTest < Minitest::Test
  HEADER = File.read(File.join(__dir__, "../../../crates/client/client-c/include/nuthatch_client.h")).gsub(%r{/\*.*?\*/}m, "")
  # What the gem does without: Ruby's clients last as long as their objects, values are got with their flags, and blocks are no
  # functions of C.
  UNUSED = %i[destroy of_process get get_many get_or_compute].freeze
  TYPES = {
    "size_t" => Fiddle::TYPE_SIZE_T, "int64_t" => Fiddle::TYPE_LONG_LONG, "uint64_t" => -Fiddle::TYPE_LONG_LONG,
    "uint32_t" => -Fiddle::TYPE_INT, "int" => Fiddle::TYPE_INT, "void" => Fiddle::TYPE_VOID
  }.freeze

  def type(declared)
    return Fiddle::TYPE_UINTPTR_T if declared.include?("*")

    TYPES.fetch(declared.split.reject { |word| word == "const" }.first)
  end

  def test_calls_have_the_types_of_the_header
    declared = HEADER.scan(/^(\w[\w ]*[ *])nuthatch_client_(\w+)\(([^)]*)\);/)
    assert_empty UNUSED.map(&:to_s) - declared.map { |_, name, _| name }
    functions = declared.reject { |_, name, _| UNUSED.include?(name.to_sym) }.to_h do |result, name, arguments|
      arguments = arguments == "void" ? [] : arguments.split(",").map { |argument| type(argument) }
      [name.to_sym, [type(result), arguments]]
    end
    assert_operator functions.length, :>, 15
    assert_equal functions, Nuthatch::Library::WAITING.merge(Nuthatch::Library::SHORT)
  end

  def test_statuses_are_those_of_the_header
    statuses = HEADER.scan(/NUTHATCH_CLIENT_STATUS_(\w+) = (-?\d+)/).to_h { |name, number| [name.to_sym, number.to_i] }
    assert_equal 14, statuses.length
    # A pointer that is NULL, and a defect, are defects of this gem or of the library; and no function is passed that computes.
    statuses.except(:NULL_POINTER, :DEFECT, :NOT_COMPUTED).each { |name, number| assert_equal number, Nuthatch::Library.const_get(name) }
  end

  # Offsets follow from the order and the sizes of the fields.
  def test_memory_is_laid_out_as_in_the_header
    assert_equal "JJQLx4q", packing("value")
    assert_equal "JJ", packing("key")
    assert_equal "JJJJqLx4", packing("entry")
    assert_equal Nuthatch::Slot::VALUE, packing("value")
    assert_equal Nuthatch::Many::ENTRY, packing("entry")
    size = [0, 0, 0, 0, 0].pack(packing("value")).bytesize
    assert_equal [size, size], [Nuthatch::Slot::VALUE_SIZE, [0, 0, 0].pack(Nuthatch::Many::VALUE).bytesize]
  end

  # Words of `pack` for a structure of C's, with its padding.
  def packing(name)
    fields = HEADER[/typedef struct nuthatch_client_#{name} \{(.*?)\}/m, 1].split(";").map(&:strip).reject(&:empty?)
    words = fields.map do |field|
      { "size_t" => "J", "uint64_t" => "Q", "int64_t" => "q", "uint32_t" => "Lx4" }.fetch(field.split.first) { "J" if field.include?("*") }
    end
    words.join
  end

  def test_the_version_is_the_librarys
    client = Nuthatch::Client.new("tcp://127.0.0.1")
    assert_equal client.version, Nuthatch::VERSION
    assert_equal ENV.fetch("NUTHATCH_VERSION", client.version), Nuthatch::VERSION
    assert_equal "libnuthatch_client.so.#{client.version[/\d+/]}", Nuthatch::Library::SONAME
  end

  def test_a_library_that_is_not_there_is_told
    error = assert_raises(Nuthatch::LibraryError) { Nuthatch::Client.new("tcp://127.0.0.1", library: "/nowhere/lib.so") }
    assert_includes error.message, "README.md"
    # One that is another.
    assert_raises(Nuthatch::LibraryError) { Nuthatch::Client.new("tcp://127.0.0.1", library: "libc.so.6") }
  end
end
