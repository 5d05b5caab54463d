// An operations log with alerts per brand and a list of brands: what the application does with its one table.

import { paginateQuery, PutCommand, QueryCommand } from '@aws-sdk/lib-dynamodb';

const TableName = 'AntiCounterfeit';

export class Operations {
  constructor(client) {
    this.client = client;
  }

  put(Item) {
    return this.client.send(new PutCommand({ TableName, Item }));
  }

  log(at, agent, details) {
    return this.put({ PK: 'OPS_LOG', SK: `${at}#${agent}`, ...details });
  }

  /** The newest lines, newest first. */
  async last(count) {
    const input = {
      TableName, KeyConditionExpression: 'PK = :log', ExpressionAttributeValues: { ':log': 'OPS_LOG' }, ScanIndexForward: false,
    };
    const found = [];
    while (found.length < count) {
      const page = await this.client.send(new QueryCommand({ ...input, Limit: count - found.length }));
      found.push(...page.Items);
      input.ExclusiveStartKey = page.LastEvaluatedKey;
      if (!page.LastEvaluatedKey) break;
    }
    return found;
  }

  alert(brand, at, kind) {
    return this.put({ PK: `THREAT#${brand}`, SK: `ALERT#${at}#${kind}`, severity: 'HIGH' });
  }

  /** A brand's alerts from one time to another, oldest first. */
  alerts(brand, from, to) {
    return this.all('PK = :key AND SK BETWEEN :from AND :to', { ':key': `THREAT#${brand}`, ':from': `ALERT#${from}`, ':to': `ALERT#${to}` });
  }

  register(brand, at) {
    return this.put({ PK: 'BRAND_INDEX', SK: `BRAND#${at}#${brand}`, brand });
  }

  brands() {
    return this.all('PK = :key', { ':key': 'BRAND_INDEX' });
  }

  async all(KeyConditionExpression, ExpressionAttributeValues) {
    const found = [];
    const input = { TableName, KeyConditionExpression, ExpressionAttributeValues };
    for await (const page of paginateQuery({ client: this.client }, input)) found.push(...page.Items);
    return found;
  }
}
