// An election: what the application does with its table. A total for each candidate, a ballot for each voter, and all ballots of an
// election in order.

import { GetCommand, PutCommand, paginateQuery, UpdateCommand } from '@aws-sdk/lib-dynamodb';

const TableName = 'ElectionData';
const candidateKey = (candidate) => ({ PK: `CANDIDATE#${candidate}`, SK: 'METADATA' });

export class Election {
  constructor(client) {
    this.client = client;
  }

  nominate(candidate, details) {
    return this.client.send(new PutCommand({ TableName, Item: { ...candidateKey(candidate), ...details } }));
  }

  vote(candidate) {
    return this.client.send(new UpdateCommand({
      TableName, Key: candidateKey(candidate), UpdateExpression: 'ADD votes :one', ExpressionAttributeValues: { ':one': 1 },
    }));
  }

  async total(candidate) {
    const { Item } = await this.client.send(new GetCommand({ TableName, Key: candidateKey(candidate) }));
    return Item?.votes ?? 0;
  }

  cast(election, voter, at, details) {
    return this.client.send(new PutCommand({
      TableName, Item: { PK: `VOTER#${voter}`, SK: 'BALLOT', GSI1PK: `ELECTION#${election}`, GSI1SK: `${at}#${voter}`, ...details },
    }));
  }

  /** When and by whom, oldest first. */
  async ballots(election) {
    const pages = paginateQuery({ client: this.client }, {
      TableName, IndexName: 'GSI1', KeyConditionExpression: 'GSI1PK = :election', ProjectionExpression: 'GSI1SK',
      ExpressionAttributeValues: { ':election': `ELECTION#${election}` },
    });
    const found = [];
    for await (const page of pages) found.push(...page.Items.map((item) => item.GSI1SK));
    return found;
  }
}
