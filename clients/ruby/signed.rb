# The AWS SDK for Ruby 1 (Debian's) through a gateway that knows its clients (signed.toml), over TLS: `signed.rb ENDPOINT CA`. It ends with 1
# where something is otherwise. It is from before expressions: conditions and updates have their legacy form.

require 'aws-sdk'
require 'uri'

ENDPOINT = URI(ARGV.fetch(0))
CA = ARGV.fetch(1)

def as(id, secret, token = nil)
  AWS::DynamoDB::Client.new(
    api_version: '2012-08-10', dynamo_db_endpoint: ENDPOINT.host, dynamo_db_port: ENDPOINT.port, dynamo_db_region: 'us-east-1', use_ssl: true,
    ssl_ca_file: CA, max_retries: 0, access_key_id: id, secret_access_key: secret, session_token: token)
end

def same(got, expected)
  raise "#{got}\n is not\n#{expected}" unless got == expected
end

def text(value)
  { s: value }
end

def play(client, table, pk)
  items = (0...20).map { |n| { 'pk' => text(pk), 'sk' => text(format('%02d', n)), 'n' => { n: n.to_s }, 'text' => text("ä  ☃\t" * 50) } }
  keys = items.map { |item| item.slice('pk', 'sk') }
  client.put_item(table_name: table, item: items[0])
  same(client.get_item(table_name: table, key: keys[0])[:item], items[0])
  added = client.update_item(
    table_name: table, key: keys[0], attribute_updates: { 'n' => { action: 'ADD', value: { n: '1' } } }, return_values: 'UPDATED_NEW')
  same(added[:attributes], { 'n' => { n: '1' } })
  client.put_item(table_name: table, item: items[0])
  written = client.batch_write_item(request_items: { table => items[1..].map { |item| { put_request: { item: item } } } })
  same(written[:unprocessed_items], {})
  pages = []
  start = nil
  loop do
    asked = { table_name: table, key_conditions: { 'pk' => { comparison_operator: 'EQ', attribute_value_list: [text(pk)] } }, limit: 7 }
    page = client.query(start ? asked.merge(exclusive_start_key: start) : asked)
    pages << page[:member]
    start = page[:last_evaluated_key] or break
  end
  same(pages, [items[0...7], items[7...14], items[14..]])
  found = client.batch_get_item(request_items: { table => { keys: keys } })[:responses][table]
  same(found.sort_by { |item| item['sk'][:s] }, items)
  begin
    client.put_item(table_name: table, item: items[0], expected: { 'pk' => { exists: false } })
    raise 'a condition that does not hold was let through'
  rescue AWS::DynamoDB::Errors::ConditionalCheckFailedException
    client.delete_item(table_name: table, key: keys[0])
    same(client.get_item(table_name: table, key: keys[0], consistent_read: true)[:item], nil)
  end
end

def refused(error, client, pk)
  client.put_item(table_name: 'Scores', item: { 'pk' => text(pk), 'sk' => text('x') })
  raise "#{error} was expected"
rescue AWS::DynamoDB::Errors.const_get(error)
  nil
end

%w[Scores Plain].each do |table|
  play(as('admin', 'admin/+secret'), table, 'team1#ruby/key')
  play(as('team1', 'team', 'token/+=='), table, 'team1#ruby/token')
end
refused(:InvalidSignatureException, as('admin', 'wrong'), 'team1#x')
refused(:UnrecognizedClientException, as('nobody', 'admin/+secret'), 'team1#x')
refused(:AccessDeniedException, as('team1', 'team', 'token/+=='), 'team2#x')
